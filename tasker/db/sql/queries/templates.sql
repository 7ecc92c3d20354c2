-- Registered templates. Each query is named and takes its parameters as %(name)s. Of each namespace no more
-- names are read than a page has, so that a page costs the same however many templates there are behind it.

-- name: registered
-- A page of templates in each of their versions, by namespace and name; of one template the version
-- registered last comes first. After the place %(after_namespace)s, %(after_name)s, %(after_at)s,
-- %(after_version)s; '' and null: from the beginning.
select ns.name as namespace, n.name, n.version, n.description, t.step_count as steps, n.updated_at
from tasker.task_namespaces ns
cross join lateral (
  select x.* from tasker.named_tasks x
  where x.namespace_id = ns.namespace_id and (%(name)s::text is null or x.name = %(name)s)
    and x.name >= case when ns.name = %(after_namespace)s then %(after_name)s else '' end
    and (ns.name <> %(after_namespace)s or x.name <> %(after_name)s
      or x.updated_at < %(after_at)s::timestamptz
      or x.updated_at = %(after_at)s::timestamptz and x.version > %(after_version)s)
  order by x.name, x.updated_at desc, x.version limit %(limit)s::int + %(offset)s::int) n
join tasker.templates t on t.template_id = n.template_id
where ns.name >= %(after_namespace)s and (%(namespace)s::text is null or ns.name = %(namespace)s)
  and (%(namespaces)s::text[] is null or ns.name = any (%(namespaces)s::text[]))
order by ns.name, n.name, n.updated_at desc, n.version limit %(limit)s::int offset %(offset)s::int

-- name: newest
-- A page of templates by the version registered last, with the number of versions, by namespace and name.
select ns.name as namespace, n.name, v.version, v.description, t.step_count as steps, v.updated_at, n.versions
from tasker.task_namespaces ns
cross join lateral (
  select x.name, count(*) as versions from tasker.named_tasks x where x.namespace_id = ns.namespace_id
  group by x.name order by x.name limit %(limit)s::int + %(offset)s::int) n
cross join lateral (
  select x.* from tasker.named_tasks x where x.namespace_id = ns.namespace_id and x.name = n.name
  order by x.updated_at desc, x.version limit 1) v
join tasker.templates t on t.template_id = v.template_id
where (%(namespace)s::text is null or ns.name = %(namespace)s)
  and (%(namespaces)s::text[] is null or ns.name = any (%(namespaces)s::text[]))
order by ns.name, n.name limit %(limit)s::int offset %(offset)s::int

-- name: counted
-- How many versions of templates there are, counted to %(most)s: of all that are meant (null), and of each of
-- the namespaces of a page (%(shown)s).
with meant as materialized (
  select ns.namespace_id, ns.name from tasker.task_namespaces ns
  where (%(namespace)s::text is null or ns.name = %(namespace)s)
    and (%(namespaces)s::text[] is null or ns.name = any (%(namespaces)s::text[]))
)
select null::text, count(*) from (
  select from meant m join tasker.named_tasks x on x.namespace_id = m.namespace_id
  where %(name)s::text is null or x.name = %(name)s limit %(most)s::int) c
union all
select m.name, (select count(*) from (select from tasker.named_tasks x where x.namespace_id = m.namespace_id
  and (%(name)s::text is null or x.name = %(name)s) limit %(most)s::int) c)
from meant m where m.name = any (%(shown)s::text[])

-- name: marked_namespaces
-- The namespaces with a template whose schemas mark a sensitive value, of any version that a task may be
-- pinned to.
select distinct t.plan->>'namespace' from tasker.templates t where strpos(t.plan::text, '"x-sensitive"') > 0
