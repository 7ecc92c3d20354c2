-- Sessions of the web page. Each query is named and takes its parameters as %(name)s.

-- name: begin
-- Keep a session for %(seconds)s, and no longer than until `until` (seconds since 1970), which may be null.
insert into tasker.page_sessions (session_hash, sealed, created_at, expires_at)
values (%(hash)s::bytea, %(sealed)s::bytea, tasker.now(),
  least(tasker.now() + make_interval(secs => %(seconds)s), to_timestamp(%(until)s::double precision)))

-- name: sealed
-- The credential of a session that has not expired.
select s.sealed from tasker.page_sessions s
where s.session_hash = %(hash)s::bytea and s.expires_at > tasker.now()

-- name: end
delete from tasker.page_sessions s where s.session_hash = %(hash)s::bytea
