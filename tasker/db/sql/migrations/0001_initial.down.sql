drop schema tasker cascade;
