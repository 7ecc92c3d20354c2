-- The size of a value as it is sent. Compressed storage may take a hundredth of it.
create or replace function tasker.sent_bytes(p_value jsonb) returns bigint
language sql stable as $$
  select case when pg_column_compression(p_value) is null then pg_column_size(p_value) else octet_length(p_value::text) end
$$;
