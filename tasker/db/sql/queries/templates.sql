-- Registered templates. Each query is named and takes its parameters as %(name)s.

-- name: registered
-- Every template in each of its versions; of one template the version registered last comes first.
select ns.name as namespace, n.name, n.version, n.description, t.step_count as steps, n.updated_at
from tasker.named_tasks n
join tasker.task_namespaces ns on ns.namespace_id = n.namespace_id
join tasker.templates t on t.template_id = n.template_id
order by ns.name, n.name, n.updated_at desc

-- name: marked_namespaces
-- The namespaces with a template, of any version that a task may be pinned to, whose schemas mark something sensitive.
select distinct t.plan->>'namespace' from tasker.templates t where strpos(t.plan::text, '"x-sensitive"') > 0
