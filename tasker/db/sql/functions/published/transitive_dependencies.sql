-- Every ancestor of a step, once, with the length of the shortest path to it and its result. A handler reads
-- the results of those that are processed.
create or replace function tasker.get_step_transitive_dependencies(input_step_uuid uuid)
returns table (step_name text, step_uuid uuid, task_uuid uuid, distance int, processed boolean, results jsonb)
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  with recursive parents as materialized (
    select coalesce(jsonb_object_agg(e.child, e.steps), '{}') as of_step,
      coalesce(sum(cardinality(e.steps)), 0) as edges from (
      select e.to_step_uuid as child, array_agg(e.from_step_uuid) as steps from tasker.workflow_step_edges e
      where e.task_uuid = (select s.task_uuid from tasker.workflow_steps s where s.workflow_step_uuid = $1)
      group by e.to_step_uuid) e
  ), above as (
    select $1 as step, 0 as distance
    union
    select p.step::uuid, a.distance + 1 from above a
    cross join jsonb_array_elements_text((select parents.of_step from parents)->a.step::text) as p (step)
    where a.distance < (select parents.edges from parents)
  )
  select s.name, s.workflow_step_uuid, s.task_uuid, a.distance, tasker.step_is_done(s.state), r.result
  from (select x.step, min(x.distance) as distance from above x where x.step <> $1 group by x.step) a
  cross join lateral (select x.* from tasker.workflow_steps x where x.workflow_step_uuid = a.step limit 1) s
  left join lateral (select x.result from tasker.step_results x
    where x.task_uuid = s.task_uuid and x.ordinal = s.ordinal
    and x.workflow_step_uuid = s.workflow_step_uuid limit 1) r on true
  order by a.distance, s.name
$$;

-- True if an edge between these steps would close a cycle. Each step is visited once, whatever the length of
-- the path.
create or replace function tasker.detect_cycle(from_step_uuid uuid, to_step_uuid uuid) returns boolean
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  with recursive children as materialized (
    select coalesce(jsonb_object_agg(e.parent, e.steps), '{}') as of_step from (
      select e.from_step_uuid as parent, array_agg(e.to_step_uuid) as steps from tasker.workflow_step_edges e
      where e.task_uuid = (select s.task_uuid from tasker.workflow_steps s where s.workflow_step_uuid = $2)
      group by e.from_step_uuid) e
  ), below as (
    select $2 as step
    union
    select c.step::uuid from below b
    cross join jsonb_array_elements_text((select children.of_step from children)->b.step::text) as c (step)
  )
  select exists (select from below b where b.step = $1)
$$;
