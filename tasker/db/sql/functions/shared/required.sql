-- An argument that has no default: the text of this key, as p_args->>p_name. Raises an error where it is
-- missing, so that no limit is unlimited because a caller forgot it. Functions in PL/pgSQL have variables
-- that are `not null` instead.
create or replace function tasker.required(p_args jsonb, p_name text) returns text
language plpgsql immutable parallel safe as $$
begin
  if p_args->>p_name is null then
    raise exception 'the argument "%" is missing', p_name using errcode = 'null_value_not_allowed';
  end if;
  return p_args->>p_name;
end
$$;
