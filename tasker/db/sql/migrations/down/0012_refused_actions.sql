alter table tasker.operator_actions drop column refusal;
