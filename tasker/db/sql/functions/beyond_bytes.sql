-- Those of the steps whose handlers' inputs do not fit into an answer of `p_max` bytes any more (rule 20), in the order
-- of the claim. The first step always fits. Stored sizes are counted, compressed as they are: no value is read.
create or replace function tasker.beyond_bytes(p_steps uuid[], p_max bigint) returns uuid[]
language plpgsql stable as $$
declare
  v_beyond uuid[];
begin
  select array_agg(q.step) into v_beyond from (
    select s.workflow_step_uuid as step, row_number() over w as place,
      sum(pg_column_size(d.context) + coalesce(r.bytes, 0)) over w as total
    from tasker.workflow_steps s join tasker.task_details d on d.task_uuid = s.task_uuid
    cross join lateral (
      select sum(pg_column_size(sr.result)) as bytes from tasker.template_steps ts
      join tasker.step_results sr on sr.task_uuid = s.task_uuid and sr.ordinal = any (ts.ancestors)
      where ts.template_id = s.template_id and ts.ordinal = s.ordinal) r
    where s.workflow_step_uuid = any (p_steps)
    window w as (order by s.workflow_step_uuid)) q
  where q.total > p_max and q.place > 1;
  return v_beyond;
end
$$;
