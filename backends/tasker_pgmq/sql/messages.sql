-- Functions for single messages, for all messages but those for steps. Seconds may have fractions.

-- Announces a message on the namespace's channel and on the global one, at the commit that makes it visible.
create or replace function tasker_pgmq.announce(queue text, msg_id bigint, delay_seconds double precision) returns void
language plpgsql as $$
declare
  namespace constant text := tasker_pgmq.extract_queue_namespace(queue);
  payload constant text := json_build_object('event_type', 'message_ready', 'msg_id', msg_id, 'queue_name', queue,
    'namespace', namespace, 'ready_at', clock_timestamp() + make_interval(secs => delay_seconds),
    'delay_seconds', delay_seconds)::text;
begin
  perform pg_notify('pgmq_message_ready.' || namespace, payload);
  perform pg_notify('pgmq_message_ready', payload);
end $$;

-- Sends messages in their order and announces the first of them, in one transaction; returns their ids.
create or replace function tasker_pgmq.send_with_notify(queue text, messages jsonb[], delay_seconds double precision)
returns bigint[]
language plpgsql as $$
declare
  ids bigint[];
begin
  execute format('with sent as (
      insert into %s (vt, message)
      select clock_timestamp() + make_interval(secs => $2), m.message
      from unnest($1) with ordinality as m (message, place) order by m.place
      returning msg_id)
    select array_agg(msg_id order by msg_id) from sent', tasker_pgmq.queue_table(queue))
  using messages, delay_seconds into ids;
  if ids is not null then
    perform tasker_pgmq.announce(queue, ids[1], delay_seconds);
  end if;
  return coalesce(ids, '{}');
end $$;

-- Hides up to `qty` visible messages for `seconds` and returns them, the oldest first.
create or replace function tasker_pgmq.read(queue text, qty int, seconds double precision)
returns table (msg_id bigint, read_ct int, message text)
language plpgsql as $$
begin
  return query execute format('with chosen as (
      select q.msg_id from %1$s q where q.vt <= clock_timestamp() order by q.msg_id limit $1 for update skip locked),
    hidden as (
      update %1$s q set vt = clock_timestamp() + make_interval(secs => $2), read_ct = q.read_ct + 1
      from chosen c where q.msg_id = c.msg_id
      returning q.msg_id, q.read_ct, q.message)
    select h.msg_id, h.read_ct, h.message::text from hidden h order by h.msg_id', tasker_pgmq.queue_table(queue))
  using qty, seconds;
end $$;

-- Hides one message for `seconds` and returns it; no row if it is gone or another process has it.
create or replace function tasker_pgmq.read_specific_message(queue text, id bigint, seconds double precision)
returns table (msg_id bigint, read_ct int, message text)
language plpgsql as $$
begin
  return query execute format('update %s q
    set vt = clock_timestamp() + make_interval(secs => $2), read_ct = q.read_ct + 1
    where q.msg_id = $1 and q.vt <= clock_timestamp()
    returning q.msg_id, q.read_ct, q.message::text', tasker_pgmq.queue_table(queue))
  using id, seconds;
end $$;

-- Deletes messages that were not received again after these read counts; returns their ids. The others belong to other
-- processes.
create or replace function tasker_pgmq.delete_received(queue text, ids bigint[], read_counts int[]) returns bigint[]
language plpgsql as $$
declare
  deleted bigint[];
begin
  execute format('with gone as (
      delete from %s q using unnest($1, $2) as ours (msg_id, read_ct)
      where q.msg_id = ours.msg_id and q.read_ct = ours.read_ct
      returning q.msg_id)
    select coalesce(array_agg(msg_id), ''{}'') from gone', tasker_pgmq.queue_table(queue))
  using ids, read_counts into deleted;
  return deleted;
end $$;

-- Makes such a message visible `seconds` from now. False: it belongs to another process.
create or replace function tasker_pgmq.set_vt_received(queue text, id bigint, read_count int, seconds double precision)
returns boolean
language plpgsql as $$
declare
  moved int;
begin
  execute format('update %s q set vt = clock_timestamp() + make_interval(secs => $3)
    where q.msg_id = $1 and q.read_ct = $2', tasker_pgmq.queue_table(queue))
  using id, read_count, seconds;
  get diagnostics moved = row_count;
  return moved = 1;
end $$;

-- The number of messages of the queue, the age of the oldest in seconds (null: none), and the number of received and
-- hidden ones.
create or replace function tasker_pgmq.stats(queue text, out depth int, out oldest double precision, out in_flight int)
language plpgsql stable as $$
begin
  execute format('select count(*), extract(epoch from clock_timestamp() - min(q.enqueued_at)),
    count(*) filter (where q.read_ct > 0 and q.vt > clock_timestamp()) from %s q', tasker_pgmq.queue_table(queue))
  into depth, oldest, in_flight;
end $$;

-- The same for many queues in one statement; missing ones are left out.
create or replace function tasker_pgmq.stats_of(queues text[])
returns table (queue text, depth int, oldest double precision, in_flight int)
language sql stable as $$
  select q.name, s.depth, s.oldest, s.in_flight
  from unnest(queues) as q (name) join pgmq.meta m on m.queue_name = q.name cross join lateral tasker_pgmq.stats(q.name) s
$$;
