-- The audit log of operator actions, over HTTP or by a command: a row is written before the action, so that none
-- happens without one, and the outcome is added.
create table tasker.operator_actions (
  action_uuid  uuid primary key default tasker.uuid_v7(),
  requested_at timestamptz not null,
  actor        text not null,
  proof        text not null check (proof in ('disabled', 'jwt', 'api_key', 'os_user')),   -- how the actor was authenticated
  endpoint     text not null,                     -- method and path, with names in place of identifiers; or the command
  path         text not null,                     -- the requested path
  request_id   text not null,
  address      text,                              -- of the client, or of the proxy before it; the host of a command
  status       int   -- of the answer, or a command's exit code; null: ended before it was known
);
