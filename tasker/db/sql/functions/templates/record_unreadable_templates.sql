-- Stores which released steps a worker could not resolve (note `unserved`: no handler), or whose template it cannot
-- read (note `unreadable`). For the step it stores the time of the first refusal, which stays as long as only refusals
-- move the token (each is a claim and a release). For the worker it stores the step, so that it is not offered again.
create or replace function tasker.record_unreadable_templates(p_judged tasker.judged_change[], p_now timestamptz) returns void
language plpgsql as $$
begin
  insert into tasker.unserved_steps as u (workflow_step_uuid, claim_token, callable, since)
  select j.step_uuid, j.token, coalesce(j.note->>'unserved', (select ts.handler from tasker.template_steps ts
    where ts.template_id = j.template_id and ts.ordinal = j.ordinal)), p_now
  from unnest(p_judged) j where tasker.kind_notes_unserved(j.kind) and j.note ?| '{unserved,unreadable}'
  on conflict (workflow_step_uuid) do update set claim_token = excluded.claim_token, callable = excluded.callable,
    since = case when u.claim_token = excluded.claim_token - 2 then u.since else excluded.since end;
  update tasker.workers w set unserved = array(select distinct k from unnest(w.unserved || r.keys) k),
    unreadable = array(select distinct t from unnest(w.unreadable || r.templates) t)
  from (select j.worker_uuid, array_agg(j.template_id || ':' || j.ordinal) as keys,
      array_agg(j.template_id) filter (where j.note ? 'unreadable') as templates from unnest(p_judged) j
    where tasker.kind_notes_unserved(j.kind) and j.note ?| '{unserved,unreadable}' group by j.worker_uuid) r
  where w.worker_uuid = r.worker_uuid;
end
$$;
