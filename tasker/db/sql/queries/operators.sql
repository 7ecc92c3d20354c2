-- Operator actions and saved views. Each query has a name and takes its parameters as %(name)s.

-- name: asked
-- Records a request in the audit log, in its transaction, with its current status.
insert into tasker.operator_actions (requested_at, actor, proof, endpoint, path, request_id, address, status)
values (tasker.now(), %(actor)s, %(proof)s, %(endpoint)s, %(path)s, %(request_id)s, %(address)s, %(status)s)
returning action_uuid::text

-- name: not_done
-- Records that a request was not carried out. `row`: the row that was rolled back, or null; a row that was
-- committed after all takes precedence.
insert into tasker.operator_actions
  (action_uuid, requested_at, actor, proof, endpoint, path, request_id, address, status, refusal)
values (coalesce(%(row)s::uuid, tasker.uuid_v7()), tasker.now(), %(actor)s, %(proof)s, %(endpoint)s, %(path)s,
  %(request_id)s, %(address)s, %(status)s, %(refusal)s)
on conflict do nothing

-- name: answered
-- Records the status of the answer.
update tasker.operator_actions set status = %(status)s where action_uuid = %(row)s::uuid

-- name: failed
-- Records the failure and its reason.
update tasker.operator_actions set status = %(status)s, refusal = %(refusal)s
where action_uuid = %(row)s::uuid

-- name: actions
-- Recorded actions, the newest first; `actor` and `since` may be null. Identifiers have a resolution of
-- milliseconds, times of microseconds.
select q.action_uuid::text, q.requested_at, q.actor, q.proof, q.endpoint, q.path, q.request_id,
  q.address, q.status, q.refusal
from (
  select a.* from tasker.operator_actions a
  where (%(actor)s::text is null or a.actor = %(actor)s)
    and (%(since)s::timestamptz is null or a.requested_at >= %(since)s)
  order by a.action_uuid desc limit %(limit)s) q
order by q.requested_at desc, q.action_uuid desc

-- name: views
-- The saved views.
select v.name, v.address, v.saved_by, v.saved_at from tasker.saved_views v order by v.name

-- name: save_view
-- Saves a view, replacing the one of this name. No row if there are %(most)s, and none of this name.
insert into tasker.saved_views (name, address, saved_by, saved_at)
select %(name)s::text, %(address)s::text, %(by)s::text, tasker.now()
where (select count(*) from tasker.saved_views) < %(most)s
  or exists (select from tasker.saved_views v where v.name = %(name)s)
on conflict (name) do update set address = excluded.address, saved_by = excluded.saved_by,
  saved_at = excluded.saved_at
returning name

-- name: remove_view
delete from tasker.saved_views where name = %(name)s returning name
