-- What each of these steps has of its own, its inputs and its checkpoint, up to `p_max` bytes together, in order of the
-- steps; the first always. Of what is beyond that it says {later: true}: the worker reads it with tasker.inputs_v1.
-- Answer: {step: {inputs, checkpoint} | {later: true}}; null when no step has either, as most do.
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
