-- What operators do. Each query is named and takes its parameters as %(name)s.

-- name: asked
-- Keep that somebody asks for something, in its transaction with the status that it has then.
insert into tasker.operator_actions (requested_at, actor, proof, endpoint, path, request_id, address, status)
values (tasker.now(), %(actor)s, %(proof)s, %(endpoint)s, %(path)s, %(request_id)s, %(address)s, %(status)s)
returning action_uuid::text

-- name: not_done
-- Keep that it was not done. `row`: what was rolled back, or null; where it was committed after all that counts.
insert into tasker.operator_actions
  (action_uuid, requested_at, actor, proof, endpoint, path, request_id, address, status, refusal)
values (coalesce(%(row)s::uuid, tasker.uuid_v7()), tasker.now(), %(actor)s, %(proof)s, %(endpoint)s, %(path)s, %(request_id)s,
  %(address)s, %(status)s, %(refusal)s)
on conflict do nothing

-- name: answered
-- Keep how it was answered.
update tasker.operator_actions set status = %(status)s where action_uuid = %(row)s::uuid

-- name: failed
-- Keep how it failed, and why.
update tasker.operator_actions set status = %(status)s, refusal = %(refusal)s where action_uuid = %(row)s::uuid

-- name: actions
-- What was asked for, the newest first; `actor` and `since` may be null. Identifiers tell milliseconds apart, times microseconds.
select q.action_uuid::text, q.requested_at, q.actor, q.proof, q.endpoint, q.path, q.request_id, q.address, q.status,
  q.refusal
from (
  select a.* from tasker.operator_actions a
  where (%(actor)s::text is null or a.actor = %(actor)s) and (%(since)s::timestamptz is null or a.requested_at >= %(since)s)
  order by a.action_uuid desc limit %(limit)s) q
order by q.requested_at desc, q.action_uuid desc

-- name: views
-- Lists that are kept under a name.
select v.name, v.address, v.saved_by, v.saved_at from tasker.saved_views v order by v.name

-- name: save_view
-- Keep one, in place of the one of this name. No row where there are %(most)s, and none of this name.
insert into tasker.saved_views (name, address, saved_by, saved_at)
select %(name)s::text, %(address)s::text, %(by)s::text, tasker.now()
where (select count(*) from tasker.saved_views) < %(most)s or exists (select from tasker.saved_views v where v.name = %(name)s)
on conflict (name) do update set address = excluded.address, saved_by = excluded.saved_by, saved_at = excluded.saved_at
returning name

-- name: remove_view
delete from tasker.saved_views where name = %(name)s returning name
