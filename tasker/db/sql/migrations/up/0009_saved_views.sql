-- Lists of tasks that people keep under a name, for everybody: the words of their address. A few rows.
create table tasker.saved_views (
  name     text primary key check (length(name) between 1 and 60),
  address  text not null check (length(address) <= 2000),
  saved_by text not null,
  saved_at timestamptz not null
);
