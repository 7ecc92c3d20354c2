-- Hash of which versions of these templates are registered, and with which content.
create or replace function tasker.registry_state(p_namespaces text[], p_names text[]) returns text
language sql stable
set search_path to pg_catalog, pg_temp
as $$
  select md5(coalesce(string_agg(concat_ws(' ', s.name, n.name, n.version, n.content), e'\n'
    order by s.name, n.name, n.version), ''))
  from (select distinct u.namespace, u.name from unnest(p_namespaces, p_names) as u (namespace, name)) m
  join tasker.task_namespaces s on s.name = m.namespace
  join tasker.named_tasks n on n.namespace_id = s.namespace_id and n.name = m.name
$$;
