-- Views saved by users for all users: the query strings of lists of tasks. A few rows.
create table tasker.saved_views (
  name     text primary key check (length(name) between 1 and 60),
  address  text not null check (length(address) <= 2000),
  saved_by text not null,
  saved_at timestamptz not null
);
