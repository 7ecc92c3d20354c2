-- What orders the versions of a template as SemVer does, under `collate "C"`: numbers by their size, a
-- pre-release before its release, build metadata without weight (order by the version itself behind it). 1.10
-- is as 1.10.0; what is no number orders as text, behind numbers.
create or replace function tasker.version_order(p_version text) returns text[]
language sql immutable parallel safe as $$
  select array(
    select case when t.part in ('', '~') then t.part
      when t.part ~ '^[0-9]+$' then '0' || to_char(length(ltrim(t.part, '0')), 'FM00') || ltrim(t.part, '0')
      else '1' || t.part end
    from (select split_part(p_version, '+', 1) as plain) v
    cross join (values (true), (false)) k (core)
    cross join lateral (select split_part(v.plain, '-', 1) as core,
      substr(v.plain, length(split_part(v.plain, '-', 1)) + 2) as pre) s
    cross join lateral unnest(case when k.core then string_to_array(s.core, '.')
        || array_fill('0'::text,
          array[greatest(0, 3 - cardinality(string_to_array(s.core, '.')))]) || ''::text
      when s.pre = '' then array['~'] else string_to_array(s.pre, '.') end) with ordinality as t (part, nth)
    order by k.core desc, t.nth)
$$;
