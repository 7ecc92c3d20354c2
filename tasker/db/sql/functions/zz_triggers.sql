-- Triggers, after the functions they call.
create or replace trigger trg_step_result_audit after insert on tasker.step_transition_log
  referencing new table as written for each statement execute function tasker.record_audit();
