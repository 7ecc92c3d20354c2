-- What operators do over HTTP. Each query is named and takes its parameters as %(name)s.

-- name: asked
-- Keep that somebody asks for something.
insert into tasker.operator_actions (requested_at, actor, proof, endpoint, path, request_id, address)
values (tasker.now(), %(actor)s, %(proof)s, %(endpoint)s, %(path)s, %(request_id)s, %(address)s)
returning action_uuid::text

-- name: answered
-- Keep how it was answered.
update tasker.operator_actions set status = %(status)s where action_uuid = %(action)s::uuid
