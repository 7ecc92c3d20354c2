-- What `tasker plan` compares: the registered templates, and the open tasks of each version. Each query is
-- named and takes its parameters as %(name)s.

-- name: state
-- Hash of the registered versions of these templates.
select tasker.registry_state(%(namespaces)s::text[], %(names)s::text[])

-- name: registered
-- The registered versions of all templates of these namespaces, the one registered last first.
select s.name, n.name, n.version, n.content, n.template_id, n.updated_at
from tasker.task_namespaces s join tasker.named_tasks n on n.namespace_id = s.namespace_id
where s.name = any (%(namespaces)s::text[]) and n.template_id is not null
order by s.name, n.name, n.updated_at desc, n.version

-- name: census
-- Open tasks of these templates, by stored content: how many, since when, and which steps they have still to
-- run: those that have not ended, and those that an expansion may create. It reads open tasks only.
with open as materialized (
  select t.task_uuid, t.template_id, t.created_at from tasker.tasks t
  join tasker.templates p on p.template_id = t.template_id
  join tasker.named_tasks n on n.named_task_uuid = p.named_task_uuid
  join tasker.task_namespaces s on s.namespace_id = n.namespace_id
  where not t.complete
    and (s.name, n.name) in (select * from unnest(%(namespaces)s::text[], %(names)s::text[]))
), tasks as (
  select o.template_id, count(*) as tasks, min(o.created_at) as oldest from open o group by o.template_id
), steps as (
  select w.template_id, w.ordinal, count(*) as steps
  from open o join tasker.workflow_steps w on w.task_uuid = o.task_uuid
  where not tasker.step_is_ended(w.state)
  group by w.template_id, w.ordinal
)
select s.name, n.name, n.version, p.hash, p.template_id = n.template_id, k.tasks, k.oldest, (
    select coalesce(jsonb_agg(jsonb_build_object('step', ts.name, 'handler', ts.handler,
      'requires', ts.requires, 'slots', ts.slots, 'open', coalesce(w.steps, 0)) order by ts.ordinal), '[]')
    from tasker.template_steps ts
    left join steps w on w.template_id = ts.template_id and w.ordinal = ts.ordinal
    where ts.template_id = k.template_id and ts.wait is null and (w.steps > 0 or not ts.is_static))
from tasks k
join tasker.templates p on p.template_id = k.template_id
join tasker.named_tasks n on n.named_task_uuid = p.named_task_uuid
join tasker.task_namespaces s on s.namespace_id = n.namespace_id
order by s.name, n.name, k.oldest
