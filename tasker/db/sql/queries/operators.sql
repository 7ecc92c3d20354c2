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
-- What was asked for, the newest first; `actor` and `since` may be null.
select a.action_uuid::text, a.requested_at, a.actor, a.proof, a.endpoint, a.path, a.request_id, a.address, a.status
from tasker.operator_actions a
where (%(actor)s::text is null or a.actor = %(actor)s) and (%(since)s::timestamptz is null or a.requested_at >= %(since)s)
order by a.action_uuid desc
limit %(limit)s
