-- The ordinals of a template's roots that are paused, and among them those that are backlogged with a mark
-- (tasker.narrowly_paused).
-- Locks: the pauses, as tasker.paused_of.
create or replace function tasker.paused_roots(p_template int, out held int[], out marked int[])
language plpgsql as $$
declare
  v_namespace int;
  v_roots int[];
begin
  select t.namespace_id, t.roots into v_namespace, v_roots from tasker.templates t where t.template_id = p_template;
  perform from tasker.pauses p where p.namespace_id = v_namespace and p.task_uuid is null order by p.pause_id for key share;
  held := array(select r.ordinal from unnest(v_roots) as r (ordinal)
    where exists (select from tasker.pauses_of(v_namespace, p_template, r.ordinal, null)));
  marked := array(select r.ordinal from unnest(held) as r (ordinal)
    where tasker.narrowly_paused(v_namespace, p_template, r.ordinal, null));
end
$$;
