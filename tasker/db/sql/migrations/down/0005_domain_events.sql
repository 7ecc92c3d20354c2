drop table tasker.domain_events_pruned cascade;
drop table tasker.parked_events cascade;
drop table tasker.event_subscribers cascade;
drop table tasker.domain_events cascade;
drop table tasker.unplaced_events cascade;
drop table tasker.event_positions cascade;
drop sequence tasker.domain_event_positions cascade;
drop table tasker.template_events cascade;
