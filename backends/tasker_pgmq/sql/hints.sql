-- The engine's functions combined with the queues: one transaction for a change and the messages that it causes.

-- The step that a message refers to, in canonical form; null for other messages. Never raises an error.
create or replace function tasker_pgmq.step_of(message jsonb) returns text
language sql immutable parallel safe as $$
  select case when message->>'step_uuid' ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
              then lower(message->>'step_uuid') end
$$;

-- Sends messages for steps to the queue of a namespace, in their order, in one statement; creates the queue on first
-- use.
create or replace function tasker_pgmq.put(namespace text, hints jsonb) returns int
language plpgsql as $$
declare
  queue constant text := 'worker_' || namespace || '_queue';
  sent int;
begin
  if to_regprocedure(format('tasker_pgmq.%I(jsonb)', 'put ' || queue)) is null
     or to_regclass(format('pgmq.%I', 'q_' || lower(queue))) is null then
    perform tasker_pgmq.ensure_queue(queue);
  end if;
  execute format('select tasker_pgmq.%I($1)', 'put ' || queue) using hints into sent;
  return sent;
end $$;

-- Takes up to `slots` messages from the queue of a namespace; a missing queue counts as empty.
create or replace function tasker_pgmq.pop(namespace text, slots int, out popped int, out steps text[])
language plpgsql as $$
declare
  queue constant text := 'worker_' || namespace || '_queue';
begin
  popped := 0;
  steps := '{}';
  if to_regclass(format('pgmq.%I', 'q_' || lower(queue))) is null then
    return;
  end if;
  if to_regprocedure(format('tasker_pgmq.%I(int)', 'pop ' || queue)) is null then
    if not exists (select from pgmq.meta m where m.queue_name = queue) then
      return;  -- the table belongs to a name that differs in case
    end if;
    perform tasker_pgmq.ensure_queue(queue);
  end if;
  execute format('select popped, steps from tasker_pgmq.%I($1)', 'pop ' || queue) using slots into popped, steps;
end $$;

-- Sends the messages that a core function returns under `send` and replaces them by their number for each namespace,
-- `sent`; zero where workers are only to be woken (an entry without a step). Namespaces are visited in the order of their names, so that two transactions never create the same two queues
-- in opposite order.
create or replace function tasker_pgmq.deliver(answer jsonb) returns jsonb
language plpgsql as $$
declare
  namespace text;
  hints jsonb;
  sent jsonb := '{}';
begin
  if jsonb_typeof(answer->'send') = 'array' then
    for namespace, hints in
      select h.hint->>'namespace', jsonb_agg(h.hint order by h.place) filter (where h.hint ? 'step')
      from jsonb_array_elements(answer->'send') with ordinality as h (hint, place)
      group by 1 order by 1
    loop
      sent := sent || jsonb_build_object(namespace,
        case when hints is null then 0 else tasker_pgmq.put(namespace, hints) end);
    end loop;
  end if;
  return (answer - 'send') || jsonb_build_object('sent', sent);
end $$;

-- Runs tasker.FN(args) and sends the messages of its answer, in one transaction. `fn` must be a versioned name. The two
-- most frequent functions are called by name, because dynamic SQL is planned in each call. With args.tell_enqueued the
-- answer includes the steps that were enqueued (tasker.enqueued_v1).
create or replace function tasker_pgmq.call_v1(fn text, args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  tells constant boolean := args ? 'tell_enqueued';
  answer jsonb;
begin
  if tells then
    args := args - 'tell_enqueued';
  end if;
  if fn = 'advance_v1' then
    answer := tasker.advance_v1(args);
  elsif fn = 'submit_v1' then
    answer := tasker.submit_v1(args);
  elsif fn is null or fn !~ '^[a-z_]+_v[0-9]+$' then
    raise exception 'tasker_pgmq.call_v1: "%" is not the name of an engine function', fn
      using errcode = 'invalid_parameter_value', hint = 'expected a name such as advance_v1';
  else
    execute format('select tasker.%I($1)', fn) using args into answer;
  end if;
  if tells then
    return tasker_pgmq.deliver(answer) || tasker.enqueued_v1(answer);
  end if;
  return tasker_pgmq.deliver(answer);
end $$;

-- Takes up to args.slots messages from the queues of args.namespaces and claims their steps with tasker.claim_v1, which
-- gets all of `args` and the steps. Returns its answer, and {"popped": n, "sent": {namespace: n}}.
-- Reading and claiming are two statements on purpose: in one, the reading part would see newer rows than the claiming
-- part, which would then find nothing to claim, and the message would be lost. Each queue gets an equal share of the
-- slots, and unused shares go to the others; `turn` (default: random) selects the first namespace. Of many namespaces
-- only those with enqueued steps are read, and one more, a different one each time, so that messages unknown to the
-- counters are found, too.
create or replace function tasker_pgmq.claim_v1(args jsonb) returns jsonb
language plpgsql
set search_path to pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  free int := (args->>'slots')::int;
  names text[];
  first int;
  answer jsonb;
  share int;
  got record;
  place int;
  dry boolean[];
  total int := 0;
  steps text[] := '{}';
  sources text[] := '{}';
begin
  if free is null or jsonb_typeof(args->'namespaces') is distinct from 'array' then
    raise exception 'tasker_pgmq.claim_v1 needs "slots" and "namespaces", got %', left(args::text, 200)
      using errcode = 'invalid_parameter_value', hint = 'expected {"namespaces": ["payments"], "slots": 10, ...}';
  end if;
  names := array(select jsonb_array_elements_text(args->'namespaces'));
  dry := array_fill(false, array[cardinality(names)]);
  first := coalesce((args->>'turn')::int, (random() * 1000000)::int);
  if cardinality(names) > 8 then
    names := array(select n.name from unnest(names) with ordinality as n (name, place)
      where n.place = 1 + first % cardinality(names) or n.name in (
        select ns.name from (select c.namespace_id from tasker.enqueue_counters c
          group by c.namespace_id having sum(c.enqueued) > 0) q
        join tasker.task_namespaces ns on ns.namespace_id = q.namespace_id)
      order by n.place);
    dry := dry[1:cardinality(names)];
  end if;
  for round in 1..2 loop
    for i in 0..cardinality(names) - 1 loop
      exit when free <= 0;
      place := 1 + (i + first) % cardinality(names);
      continue when dry[place];
      share := case round when 1 then ceil(free::numeric / (cardinality(names) - i)) else free end;
      select p.popped, p.steps into got from tasker_pgmq.pop(names[place], share) p;
      dry[place] := got.popped < share;
      total := total + got.popped;
      free := free - got.popped;
      steps := steps || got.steps;
      sources := sources || array_fill(names[place], array[cardinality(got.steps)]);
    end loop;
  end loop;

  answer := tasker.claim_v1(args || jsonb_build_object('steps', to_jsonb(steps)));
  perform tasker_pgmq.set_aside_unknown(answer->'verdicts', steps, sources);
  if args ? 'tell_enqueued' then
    return tasker_pgmq.deliver(answer) || jsonb_build_object('popped', total) || tasker.enqueued_v1(answer);
  end if;
  return tasker_pgmq.deliver(answer) || jsonb_build_object('popped', total);
end $$;

-- Stores messages for steps that do not exist (verdict `unknown`) in the poison table.
create or replace function tasker_pgmq.set_aside_unknown(verdicts jsonb, steps text[], sources text[]) returns void
language plpgsql as $$
begin
  if jsonb_path_exists(verdicts, '$.* ? (@ == "unknown")') then
    insert into tasker.poison_messages (queue_name, message, reason)
    select 'worker_' || h.source || '_queue', jsonb_build_object('step_uuid', h.step), 'unknown step'
    from unnest(steps, sources) as h (step, source)
    where verdicts->>h.step = 'unknown';
  end if;
end $$;

-- Those of `steps` that have no message in the namespace's queue. A message taken by an open transaction still counts.
create or replace function tasker_pgmq.missing_v1(namespace text, steps uuid[]) returns setof uuid
language plpgsql stable
set jit = off as $$
declare
  hot constant text := format('pgmq.%I', 'q_worker_' || lower(namespace) || '_queue');
begin
  if to_regclass(hot) is null then
    return query select s from unnest(steps) s;
  else
    return query execute format('select s from unnest($1) s
      where not exists (select from %s q where tasker_pgmq.step_of(q.message) = s::text)', hot) using steps;
  end if;
end $$;
