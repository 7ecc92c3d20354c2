-- True if each state of a path may follow the one before it.
create or replace function tasker.path_is_legal(p_subject text, p_path text) returns boolean
language sql immutable parallel safe
as $$
  select not exists (
    select from string_to_array(p_path, '>') as p (states) cross join lateral generate_series(2, cardinality(p.states)) as g (n)
    where not exists (select from tasker.legal_transitions() l
      where l.subject = p_subject and l.state = p.states[g.n - 1] and p.states[g.n] = any (l.followers)))
$$;
