-- Who is signed in on the web page. `session_hash` is the SHA-256 of the identifier in the browser's cookie, `sealed` the
-- API key or token, encrypted with a key that is derived from the identifier: who reads this table learns neither.
create table tasker.page_sessions (
  session_hash bytea primary key check (length(session_hash) = 32),
  sealed       bytea not null,
  created_at   timestamptz not null,
  expires_at   timestamptz not null
);
create index page_sessions_expiry on tasker.page_sessions (expires_at);
