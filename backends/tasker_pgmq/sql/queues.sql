-- Queues: their names, their creation on first use, and the two functions of each.
do $$ begin
  if pg_catalog.to_regnamespace('tasker_pgmq') is null then
    create schema tasker_pgmq;
  end if;
end $$;

-- The namespace in a queue name. Same rules as tasker.messaging.queues.namespace_of.
create or replace function tasker_pgmq.extract_queue_namespace(queue text) returns text
language sql immutable strict parallel safe as $$
  select case
    when queue ~ '^orchestration' then 'orchestration'
    when queue ~ '^worker_.*_queue$' then coalesce((regexp_match(queue, '^worker_(.+?)_queue$'))[1], 'worker')
    when queue ~ '^[a-zA-Z][a-zA-Z0-9_]*_queue$' then left(queue, -6)
    else 'default'
  end
$$;

-- The table of an existing queue. PGMQ folds names to lower case, so the exact name is looked up in its catalog.
create or replace function tasker_pgmq.queue_table(queue text) returns text
language plpgsql stable as $$
begin
  if not exists (select from pgmq.meta m where m.queue_name = queue) then
    raise exception 'queue "%" does not exist', queue using errcode = 'undefined_table', hint = 'create it first';
  end if;
  return format('pgmq.%I', 'q_' || lower(queue));
end $$;

-- Creates the queue if it is missing, with its functions. Safe under concurrency: one creator at a time for each name;
-- the others wait for its commit and find the queue.
-- Locks: the name's advisory lock, until the end of the transaction.
-- Runs with the rights of its owner, who then owns every queue, so that processes with different roles can share it
-- (`tasker db roles`); therefore only the roles named there may call it.
create or replace function tasker_pgmq.ensure_queue(queue text) returns void
language plpgsql
security definer
set search_path to pg_catalog, pg_temp
as $$
declare
  twin text;
begin
  perform pg_advisory_xact_lock(hashtextextended('tasker_pgmq.queue:' || lower(queue), 0));
  select m.queue_name into twin from pgmq.meta m where lower(m.queue_name) = lower(queue) and m.queue_name <> queue;
  if found then
    raise exception 'queue "%" cannot be made: queue "%" differs only in upper and lower case', queue, twin
      using errcode = 'duplicate_table', hint = 'PGMQ would keep both in one table: rename the namespace';
  end if;
  if to_regclass(format('pgmq.%I', 'q_' || lower(queue))) is null then
    perform pgmq.create(queue);
    perform tasker_pgmq.tune(queue);
    perform pg_notify('pgmq_queue_created', json_build_object('event_type', 'queue_created', 'queue_name', queue,
      'namespace', tasker_pgmq.extract_queue_namespace(queue), 'created_at', clock_timestamp())::text);
  end if;
  if to_regprocedure(format('tasker_pgmq.%I(int)', 'pop ' || queue)) is null then
    perform tasker_pgmq.generate(queue);
  end if;
end $$;
revoke execute on function tasker_pgmq.ensure_queue(text) from public;

-- Settings of a queue table, which has few live rows with a short life: room for updates on the page, early vacuum at
-- full speed.
create or replace function tasker_pgmq.tune(queue text) returns void
language plpgsql as $$
begin
  execute format('alter table %s set (fillfactor = 70, autovacuum_vacuum_threshold = 500,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 2000,
    autovacuum_vacuum_insert_threshold = 10000)', tasker_pgmq.queue_table(queue));
end $$;

-- Creates "pop QUEUE" and "put QUEUE" as static SQL, so that their plans are cached. Building the same statement in
-- each call (as pgmq.pop and pgmq.send_batch do) costs 0.1 to 0.2 ms more per call.
create or replace function tasker_pgmq.generate(queue text) returns void
language plpgsql as $$
begin
  execute format($generated$
    -- Takes up to `slots` visible messages from the queue; messages that are not for a step go to the poison table.
    create or replace function tasker_pgmq.%2$I(slots int, out popped int, out steps text[])
    language plpgsql
    set plan_cache_mode = force_generic_plan set enable_seqscan = off set jit = off as $body$
    declare
      poison jsonb;
    begin
      with taken as (
        delete from %1$s q
        where q.msg_id = any (array(select c.msg_id from %1$s c where c.vt <= clock_timestamp()
                                    order by c.msg_id limit slots for update skip locked))
        returning q.msg_id, q.message, tasker_pgmq.step_of(q.message) as step
      )
      select count(*), coalesce(array_agg(t.step order by t.msg_id) filter (where t.step is not null), '{}'),
             jsonb_agg(jsonb_build_array(t.msg_id, t.message)) filter (where t.step is null)
      into popped, steps, poison
      from taken t;
      if poison is not null then
        insert into tasker.poison_messages (queue_name, msg_id, message, reason)
        select %3$L, (p->>0)::bigint, p->1,
               case jsonb_typeof(p->1) when 'object' then 'no valid step_uuid' else 'not a JSON object' end
        from jsonb_array_elements(poison) p;
      end if;
    end $body$
  $generated$, tasker_pgmq.queue_table(queue), 'pop ' || queue, queue);
  execute format($generated$
    -- Sends messages for steps [{step, task, delay_ms?}] in their order; returns their number.
    create or replace function tasker_pgmq.%2$I(hints jsonb) returns int
    language plpgsql
    set plan_cache_mode = force_generic_plan set jit = off as $body$
    declare
      sent int;
    begin
      insert into %1$s (vt, message)
      select clock_timestamp() + coalesce((h->>'delay_ms')::int, 0) * interval '1 millisecond',
             jsonb_build_object('step_uuid', h->>'step', 'task_uuid', h->>'task')
      from jsonb_array_elements(hints) h;
      get diagnostics sent = row_count;
      return sent;
    end $body$
  $generated$, tasker_pgmq.queue_table(queue), 'put ' || queue);
end $$;

-- Deletes the queue, its archive and its functions; does nothing if it does not exist.
create or replace function tasker_pgmq.drop_queue(queue text) returns void
language plpgsql as $$
begin
  perform pg_advisory_xact_lock(hashtextextended('tasker_pgmq.queue:' || lower(queue), 0));
  if exists (select from pgmq.meta m where m.queue_name = queue) then
    perform pgmq.drop_queue(queue);
    execute format('drop function if exists tasker_pgmq.%I(int), tasker_pgmq.%I(jsonb)', 'pop ' || queue, 'put ' || queue);
  end if;
end $$;
