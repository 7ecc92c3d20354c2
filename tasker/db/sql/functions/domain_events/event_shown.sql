-- An event as published: its position, the fields of domain events, and those required by CloudEvents 1.0, from the
-- same columns.
create or replace function tasker.event_shown(p_event tasker.domain_events, p_position bigint) returns jsonb language sql stable as $$
  select jsonb_build_object('position', p_position, 'specversion', '1.0', 'id', p_event.event_uuid,
    'source', '/tasker/' || n.name, 'type', p_event.name, 'subject', p_event.task_uuid || '/' || p_event.step_name,
    'time', m.fired_at, 'datacontenttype', 'application/json', 'event_id', p_event.event_uuid,
    'event_name', p_event.name, 'event_version', '1.0', 'payload', p_event.payload,
    'metadata', coalesce(p_event.metadata, '{}') || jsonb_build_object('task_uuid', p_event.task_uuid,
      'step_uuid', p_event.workflow_step_uuid, 'step_name', p_event.step_name, 'namespace', n.name,
      'correlation_id', p_event.correlation_id, 'fired_at', m.fired_at, 'fired_by', p_event.fired_by,
      'outcome', p_event.outcome, 'attempt', p_event.attempt),
    'delivery_mode', p_event.delivery_mode, 'withheld', p_event.withheld)
  from tasker.task_namespaces n, lateral (select coalesce(p_event.metadata->'fired_at', to_jsonb(p_event.created_at)) as fired_at) m
  where n.namespace_id = p_event.namespace_id
$$;
