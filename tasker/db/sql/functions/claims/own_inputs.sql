-- The inputs and the checkpoint of each of these steps, up to `p_max` bytes together, in the order of the steps; those
-- of the first step always. A step beyond the limit has {later: true}: the worker reads it with tasker.inputs_v1.
-- Returns: {step: {inputs, checkpoint} | {later: true}}; null if no step has either, which is the usual case.
create or replace function tasker.own_inputs(p_steps uuid[], p_max bigint) returns jsonb
language plpgsql stable as $$
begin
  return (
    select jsonb_object_agg(q.step, case when q.sent <= greatest(p_max, q.bytes)
      then jsonb_build_object('inputs', q.inputs, 'checkpoint', q.checkpoint) else '{"later": true}' end)
    from (
      select o.*, sum(o.bytes) over (order by o.step) as sent from (
        select coalesce(i.workflow_step_uuid, k.workflow_step_uuid) as step, i.inputs, k.checkpoint,
          coalesce(i.bytes, 0)::bigint + coalesce(k.bytes, 0) as bytes
        from (select * from tasker.step_inputs where workflow_step_uuid = any (p_steps)) i
        full join (select * from tasker.step_checkpoints where workflow_step_uuid = any (p_steps)) k using (workflow_step_uuid)
      ) o) q);
end
$$;
