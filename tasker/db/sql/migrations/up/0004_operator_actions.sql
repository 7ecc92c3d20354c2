-- Who asked for what, over HTTP or by a command: a row before anything is done, so that nobody acts without one, and how it
-- was answered.
create table tasker.operator_actions (
  action_uuid  uuid primary key default tasker.uuid_v7(),
  requested_at timestamptz not null,
  actor        text not null,
  proof        text not null check (proof in ('disabled', 'jwt', 'api_key', 'os_user')),   -- how the actor is known
  endpoint     text not null,                     -- method and path, with names in place of identifiers; the command
  path         text not null,                     -- what was asked for
  request_id   text not null,
  address      text,                              -- of the client, or of the proxy before it; the host of a command
  status       int                                -- of the answer, or a command's exit code; null: it ended before it was known
);
