-- Finds or creates a namespace; exactly one row under any concurrency.
create or replace function tasker.namespace_id(p_name text) returns int
language plpgsql as $$
declare
  v_id int;
begin
  select namespace_id into v_id from tasker.task_namespaces where name = p_name;
  if v_id is null then
    insert into tasker.task_namespaces (name) values (p_name) on conflict (name) do nothing returning namespace_id into v_id;
    if v_id is null then
      select namespace_id into v_id from tasker.task_namespaces where name = p_name;
    end if;
  end if;
  return v_id;
end
$$;
