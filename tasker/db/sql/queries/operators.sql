-- What operators do. Each query is named and takes its parameters as %(name)s.

-- name: asked
-- Keep that somebody asks for something.
insert into tasker.operator_actions (requested_at, actor, proof, endpoint, path, request_id, address)
values (tasker.now(), %(actor)s, %(proof)s, %(endpoint)s, %(path)s, %(request_id)s, %(address)s)
returning action_uuid::text

-- name: answered
-- Keep how it was answered.
update tasker.operator_actions set status = %(status)s where action_uuid = %(action)s::uuid

-- name: actions
-- What was asked for, the newest first; `actor` and `since` may be null. Identifiers tell milliseconds apart, times microseconds.
select q.action_uuid::text, q.requested_at, q.actor, q.proof, q.endpoint, q.path, q.request_id, q.address, q.status
from (
  select a.* from tasker.operator_actions a
  where (%(actor)s::text is null or a.actor = %(actor)s) and (%(since)s::timestamptz is null or a.requested_at >= %(since)s)
  order by a.action_uuid desc limit %(limit)s) q
order by q.requested_at desc, q.action_uuid desc
