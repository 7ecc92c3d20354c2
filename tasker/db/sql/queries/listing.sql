-- Lists of tasks, built from the requested filters (services/task_filter.py), and matches of a search text
-- (services/task_search.py).

-- name: page
-- The identifiers of one page of the matching tasks, the newest first (`{order}` desc), or the oldest;
-- `{beyond}` is the comparison with the end of the page before.
select t.task_uuid::text {matching}
and (%(after)s::uuid is null or t.task_uuid {beyond} %(after)s::uuid)
order by t.task_uuid {order} limit %(limit)s offset %(offset)s

-- name: page_of_inputs
-- The same for tasks whose input contains %(context)s, among the first %(most)s that match: inputs are not
-- indexed.
select q.task_uuid::text from (
  select t.task_uuid {matching}
  and (%(after)s::uuid is null or t.task_uuid {beyond} %(after)s::uuid)
  order by t.task_uuid {order} limit %(most)s) q
join tasker.task_details c on c.task_uuid = q.task_uuid and c.context @> %(context)s::jsonb
order by q.task_uuid {order} limit %(limit)s offset %(offset)s

-- name: page_of_newest
-- One page of the tasks that have what is common, among the first %(near)s that match all else; and the last
-- of these where that does not fill the page, null when there are fewer.
with page as materialized (
  select n.task_uuid from (
    select t.task_uuid {matching}
    and (%(after)s::uuid is null or t.task_uuid {beyond} %(after)s::uuid)
    order by t.task_uuid {order} limit %(near)s) n
  join tasker.task_details d on d.task_uuid = n.task_uuid where true {common}
  order by n.task_uuid {order} limit %(limit)s offset %(offset)s)
select array(select p.task_uuid::text from page p order by p.task_uuid {order}), (
  select t.task_uuid::text {matching}
  and (select count(*) from page) < %(limit)s
  and (%(after)s::uuid is null or t.task_uuid {beyond} %(after)s::uuid)
  order by t.task_uuid {order} limit 1 offset %(near)s - 1)

-- name: count_of_newest
-- How many tasks have what is common among the first %(near)s that match all else; and whether there are more
-- of these.
with newest as materialized (select t.task_uuid {matching} order by t.task_uuid {order} limit %(near)s)
select (select count(*) from newest n join tasker.task_details d on d.task_uuid = n.task_uuid
    where true {common}),
  (select count(*) = %(near)s from newest)

-- name: page_of_common
-- How many tasks have what is common, at most one more than %(few)s, and one page of those that match all
-- else.
with common as materialized ({of_common})
select (select count(*) from common), array(
  select t.task_uuid::text {matching} and t.task_uuid = any (array(select g.task_uuid from common g))
  and (select count(*) from common) <= %(few)s
  and (%(after)s::uuid is null or t.task_uuid {beyond} %(after)s::uuid)
  order by t.task_uuid {order} limit %(limit)s offset %(offset)s)

-- name: count_of_common
-- The same, and how many match all else.
with common as materialized ({of_common})
select (select count(*) from common) as common, (
  select count(*) from (select {matching} and t.task_uuid = any (array(select g.task_uuid from common g))
    and (select count(*) from common) <= %(few)s limit %(most)s) q) as matching

-- name: common
select d.task_uuid from tasker.task_details d where true {common} limit %(few)s + 1

-- name: count
-- The number of matching tasks; at most %(most)s are counted.
select count(*) from (select {matching} limit %(most)s) q

-- name: tasks
from tasker.tasks t

-- name: details
join tasker.task_details d on d.task_uuid = t.task_uuid

-- name: named_tasks
-- The matching templates, in every version.
select array(
  select nt.named_task_uuid from tasker.named_tasks nt
  join tasker.task_namespaces ns on ns.namespace_id = nt.namespace_id
  where (%(namespace)s::text is null or ns.name = %(namespace)s)
    and (%(template)s::text is null or nt.name = %(template)s)
    and (%(version)s::text is null or nt.version = %(version)s)
    and (%(namespaces)s::text[] is null or ns.name = any (%(namespaces)s)))

-- name: template_names
-- The same templates by namespace, name and version.
select ns.name, nt.name, nt.version
from tasker.named_tasks nt join tasker.task_namespaces ns on ns.namespace_id = nt.namespace_id
where (%(namespace)s::text is null or ns.name = %(namespace)s)
  and (%(template)s::text is null or nt.name = %(template)s)
  and (%(version)s::text is null or nt.version = %(version)s)
  and (%(namespaces)s::text[] is null or ns.name = any (%(namespaces)s))

-- name: template
t.named_task_uuid = any (%(named_tasks)s::uuid[])

-- name: status
t.state = %(status)s::text

-- name: trouble
-- The state of a task that ended in another state than complete.
t.trouble = %(status)s::text

-- name: open
not t.complete

-- name: waiting_for
-- Kinds of waits as in tasker.wait_word.
t.task_uuid in (select w.task_uuid from tasker.step_waits w where w.ended_at is null
  and w.kind = any (case %(waiting_for)s::text when 'time' then array['w'] when 'person' then array['a']
    when 'task' then array['c'] else array['e', 'h'] end::"char"[]))

-- name: created_after
-- Identifiers begin with the time of the process that created them, whose clock may be a day off.
t.created_at >= %(created_after)s::timestamptz
and t.task_uuid >= tasker.task_uuid_at(%(created_after)s::timestamptz - interval '1 day')

-- name: created_before
t.created_at < %(created_before)s::timestamptz
and t.task_uuid < tasker.task_uuid_at(%(created_before)s::timestamptz + interval '1 day')

-- name: fingerprint
t.task_uuid in (select e.task_uuid from tasker.tasks_dlq e
  where e.fingerprints @> array[%(fingerprint)s::text])

-- name: initiator
d.initiator = %(initiator)s::text

-- name: source_system
d.source_system = %(source_system)s::text

-- name: tenant
t.tenant = %(tenant)s::text

-- name: outcome
t.outcome = %(outcome)s::text

-- name: tenants
t.tenant = any (%(tenants)s::text[])

-- name: correlation_id
d.correlation_id = %(correlation_id)s::uuid

-- name: idempotency_key
-- The identities that result from the key with each matching template.
d.identity_hash = any (%(identities)s::text[])

-- name: inputs
-- For indexed inputs.
d.context @> %(context)s::jsonb

-- name: tags
d.tags @> %(tags)s::text[] and cardinality(d.tags) > 0

-- name: of_uuid
-- The objects with this identifier: a task, also found by one of its steps; a dead letter; tasks of one
-- correlation.
select q.kind, q.found from (
  select 1 as place, 'task' as kind, t.task_uuid::text as found, ns.name as namespace
  from tasker.tasks t join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
  where t.task_uuid in (%(uuid)s::uuid, (left(%(uuid)s::text, 30) || '000000')::uuid)
  union all
  select 2, 'entry', e.dlq_entry_uuid::text, e.namespace from tasker.tasks_dlq e
  where e.dlq_entry_uuid = %(uuid)s::uuid
  union all
  (select 3, 'correlation', d.correlation_id::text, ns.name
  from tasker.task_details d join tasker.tasks t on t.task_uuid = d.task_uuid
  join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
  where d.correlation_id = %(uuid)s::uuid limit 100)) q
where %(namespaces)s::text[] is null or q.namespace = any (%(namespaces)s)
order by q.place limit 1

-- name: templates_like
-- Templates with the text in their name, exact matches first.
select q.namespace, q.name, q.same from (
  select distinct ns.name as namespace, nt.name as name,
    lower(%(text)s::text) in (lower(nt.name), lower(ns.name || '/' || nt.name),
      lower(ns.name || '/' || nt.name || ':' || nt.version)) as same
  from tasker.named_tasks nt join tasker.task_namespaces ns on ns.namespace_id = nt.namespace_id
  where position(lower(%(text)s::text) in lower(ns.name || '/' || nt.name || ':' || nt.version)) > 0
    and (%(namespaces)s::text[] is null or ns.name = any (%(namespaces)s))) q
order by q.same desc, lower(q.namespace) = lower(%(text)s::text) desc, q.namespace, q.name limit %(limit)s

-- name: tagged
-- One row if a task has this tag.
select 1 from tasker.task_details d join tasker.tasks t on t.task_uuid = d.task_uuid
join tasker.task_namespaces ns on ns.namespace_id = t.namespace_id
where d.tags @> array[%(tag)s::text] and cardinality(d.tags) > 0
  and (%(namespaces)s::text[] is null or ns.name = any (%(namespaces)s)) limit 1
