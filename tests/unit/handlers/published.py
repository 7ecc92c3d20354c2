"""The published surface, module by module.

One paragraph per class: `@name` is a property, `name(...)` a method with its parameters, `name` a required field,
`name = default` a field or attribute; `name = ~` has a value of no interest. A paragraph `-` lists functions.
"""

from __future__ import annotations

PUBLISHED: tuple[tuple[str, str], ...] = (
    (
        "tasker.handlers.step_handler",
        """
    StepHandler: handler_name = '' | handler_version = '1.0.0' | call(context) | @name | @version | @capabilities |
        config_schema() | success(result=None, metadata=None) | failure(message, error_type='handler_error',
        retryable=True, metadata=None, error_code=None)
    """,
    ),
    (
        "tasker.handlers.decorators",
        """
    FunctionalHandler:
    Decision: outcome | route(steps, **routing_context) | skip(reason, **routing_context)
    BatchConfig: total_items | batch_size | metadata = {}
    -: step_handler(name, version='1.0.0') | depends_on(**deps) | inputs(*keys_or_model) | decision_handler(name,
        version='1.0.0') | batch_analyzer(name, worker_template, version='1.0.0') | batch_worker(name,
        version='1.0.0') | api_handler(name, base_url, version='1.0.0', timeout=30.0, default_headers=None)
    """,
    ),
    (
        "tasker.handlers.decisions",
        """
    DecisionMixin: @decision_capabilities | decision_success(steps, routing_context=None, metadata=None) |
        decision_success_with_outcome(outcome, metadata=None) | decision_no_branches(outcome, metadata=None) |
        route_to_steps(step_names, routing_context=None, metadata=None) | skip_branches(reason,
        routing_context=None, metadata=None) | decision_failure(message, error_type='decision_error',
        retryable=False, metadata=None)
    """,
    ),
    (
        "tasker.handlers.http.response",
        """
    ApiResponse: __init__(response, body=None) | @ok | @is_client_error | @is_server_error | @is_retryable |
        @retry_after | to_dict()
    APIMixin: base_url = '' | default_timeout = 30.0 | default_headers = {} | __init__() | @api_capabilities |
        @client | close() | get(path, params=None, headers=None, **kwargs) | post(path, json=None, data=None,
        headers=None, **kwargs) | put(path, json=None, data=None, headers=None, **kwargs) | patch(path, json=None,
        data=None, headers=None, **kwargs) | delete(path, headers=None, **kwargs) | request(method, path, **kwargs)
        | api_success(response, result=None, include_response=True) | api_failure(response, message=None) |
        connection_error(error, context=None) | timeout_error(error, context=None)
    """,
    ),
    (
        "tasker.handlers.api_handler",
        """
    ApiHandler: @capabilities
    """,
    ),
    (
        "tasker.handlers.decisions",
        """
    DecisionHandler: @capabilities
    """,
    ),
    (
        "tasker.handlers.batchable",
        """
    BatchAggregationScenario: is_no_batches | batchable_result | batch_results | worker_count |
        detect(dependency_results, batchable_step_name, batch_worker_prefix) | no_batches()
    BatchWorkerConfig: __init__(batch_id, cursor_start, cursor_end, row_count, worker_index, total_workers) |
        to_dict()
    Batchable: create_cursor_config(start, end, step_size=1, metadata=None) | create_cursor_ranges(total_items,
        batch_size, step_size=1, max_batches=None) | create_cursor_configs(total_items, worker_count) |
        get_batch_worker_inputs(context) | handle_no_op_worker(context) | create_batch_outcome(total_items,
        batch_size, step_size=1, batch_metadata=None) | create_batch_outcome_from_ranges(ranges, step_size=1,
        total_items=None, batch_metadata=None) | create_worker_outcome(items_processed, items_succeeded=0,
        items_failed=0, items_skipped=0, results=None, errors=None, last_cursor=None, batch_metadata=None) |
        get_batch_context(context) | create_batch_context(cursor_config, batch_index, total_batches,
        batch_metadata=None) | batch_analyzer_success(outcome=None, metadata=None,
        worker_template_name='batch_worker', cursor_configs=None, total_items=None, batch_metadata=None) |
        no_batches_outcome(reason, metadata=None) | batch_worker_success(outcome=None, metadata=None,
        items_processed=None, items_succeeded=None, items_failed=0, items_skipped=0, results=None, errors=None,
        last_cursor=None, batch_metadata=None) | checkpoint_yield(cursor, items_processed, accumulated_results=None)
        | batch_worker_partial_failure(outcome, message=None, metadata=None) |
        detect_aggregation_scenario(dependency_results, batchable_step_name, batch_worker_prefix) |
        no_batches_aggregation_result(zero_metrics=None) | aggregate_batch_worker_results(scenario,
        zero_metrics=None, aggregation_fn=None) | aggregate_worker_results(worker_results)
    """,
    ),
    (
        "tasker.types",
        """
    StepHandlerCallResult: success | result = {} | error_message = None | metadata = {}
    LogContext: correlation_id = None | task_uuid = None | step_uuid = None | namespace = None | operation = None
    ResultStatus: SUCCESS = 'completed' | FAILURE = 'error' | RETRYABLE_ERROR = 'retryable_error' | PERMANENT_ERROR
        = 'permanent_error'
    ErrorType: PERMANENT_ERROR = 'permanent_error' | RETRYABLE_ERROR = 'retryable_error' | VALIDATION_ERROR =
        'validation_error' | TIMEOUT = 'timeout' | HANDLER_ERROR = 'handler_error' | is_standard(error_type) |
        is_typically_retryable(error_type)
    StepContext: task_uuid | step_uuid | correlation_id | handler_name | input_data = {} |
        dependency_results = {} | step_config = {} | step_inputs = {} | retry_count = 0 | max_retries = 3 |
        get_dependency_result(step_name) | get_input(key) | get_config(key) |
        is_retry() | is_last_retry() | get_input_or(key, default=None) | get_dependency_field(step_name, *path) |
        @checkpoint | @checkpoint_cursor | @checkpoint_items_processed | @accumulated_results | has_checkpoint() |
        get_dependency_result_keys() | get_all_dependency_results(prefix)
    StepHandlerResult: is_success | result = None | error_message = None | error_type = None | error_code = None |
        retryable = True | metadata = {} | success(result, metadata=None) | failure(message,
        error_type='handler_error', retryable=True, metadata=None, error_code=None) | is_success_result() |
        is_failure_result()
    DomainEventMetadata: task_uuid | step_uuid = None | step_name = None | namespace = None | correlation_id |
        fired_at | fired_by
    ExecutionResult: success | result = None | error_message = None | error_type = None | execution_time_ms = None
    InProcessDomainEvent: event_id | event_name | event_version | metadata | payload = {} | execution_result = None
    DecisionType: CREATE_STEPS = 'create_steps' | NO_BRANCHES = 'no_branches'
    DecisionPointOutcome: decision_type | next_step_names = [] | dynamic_steps = None | reason = None |
        routing_context = {} | create_steps(step_names, dynamic_steps=None, routing_context=None) |
        no_branches(reason, routing_context=None)
    CursorConfig: start_cursor | end_cursor | step_size = 1 | metadata = {}
    BatchAnalyzerOutcome: cursor_configs = [] | total_items = None | batch_metadata = {} | from_ranges(ranges,
        step_size=1, total_items=None, batch_metadata=None)
    BatchWorkerContext: batch_id | cursor_config | batch_index | total_batches | batch_metadata = {} | checkpoint =
        {} | @start_cursor | @end_cursor | @step_size | @checkpoint_cursor | @accumulated_results | has_checkpoint()
        | @checkpoint_items_processed | from_step_context(step_context)
    BatchWorkerOutcome: items_processed = 0 | items_succeeded = 0 | items_failed = 0 | items_skipped = 0 | results =
        [] | errors = [] | last_cursor = None | batch_metadata = {}
    FailureStrategy: CONTINUE_ON_FAILURE = 'continue_on_failure' | FAIL_FAST = 'fail_fast' | ISOLATE = 'isolate'
    RustCursorConfig: batch_id | start_cursor | end_cursor | batch_size
    BatchMetadata: cursor_field | failure_strategy
    RustBatchWorkerInputs: cursor | batch_metadata | is_no_op
    NoBatchesOutcome: type = 'no_batches'
    CreateBatchesOutcome: type = 'create_batches' | worker_template_name | worker_count | cursor_configs |
        total_items
    -: no_batches() | create_batches(worker_template_name, worker_count, cursor_configs, total_items) |
        aggregate_batch_results(worker_results, max_errors=100)
    BatchAggregationResult: total_processed | total_succeeded | total_failed | total_skipped | batch_count |
        success_rate | errors = [] | error_count
    """,
    ),
    (
        "tasker.errors",
        """
    TaskerError: retryable = True | __init__(message, *, retryable=None, metadata=None, error_code=None,
        retry_after=None, context=None) | to_dict()
    RetryableError: retryable = True
    PermanentError: retryable = False
    TimeoutError:
    NetworkError:
    RateLimitError:
    ServiceUnavailableError:
    ResourceContentionError:
    ValidationError:
    NotFoundError:
    AuthenticationError:
    AuthorizationError:
    ConfigurationError:
    BusinessLogicError:
    """,
    ),
    (
        "tasker.errors.handler",
        """
    ErrorClassifier: PERMANENT_ERROR_CLASSES = ~ | RETRYABLE_ERROR_CLASSES = ~ | __init__(*, default_retryable=True)
        | retryable(exception) | permanent(exception) | classify(exception)
    -: get_classifier() | is_retryable(exception) | is_permanent(exception)
    """,
    ),
    (
        "tasker.handlers.registry.resolver",
        """
    BaseResolver: @name | @priority | can_resolve(definition, config=None) | resolve(definition, config=None) |
        registered_callables()
    """,
    ),
    (
        "tasker.handlers.registry.resolver",
        """
    HandlerDefinition: callable | handler_method = None | resolver = None | initialization = {} | effective_method()
        | uses_method_dispatch() | has_resolver_hint() | from_callable(callable_str) | from_dict(data)
    """,
    ),
    (
        "tasker.handlers.registry.resolver_chain",
        """
    ResolverNotFoundError:
    ResolutionError:
    ResolverChain: __init__() | default() | add_resolver(resolver) | remove_resolver(name) | get_resolver(name) |
        @explicit_resolver | resolve(definition, config=None) | can_resolve(definition, config=None) |
        registered_callables() | register(key, handler) | chain_info() | @resolver_names | list_resolvers() |
        wrap_for_method_dispatch(handler, definition)
    """,
    ),
    (
        "tasker.handlers.registry.resolver",
        """
    RegistryResolver: pattern = None | prefix = None | __init__() | @name | @priority | can_resolve(definition,
        config=None) | resolve(definition, config=None) | resolve_handler(definition, config)
    """,
    ),
    (
        "tasker.handlers.registry.resolvers",
        """
    ExplicitMappingResolver: __init__(name='explicit_mapping') | @name | @priority | can_resolve(definition,
        config=None) | resolve(definition, config=None) | register(key, handler) | unregister(key) |
        registered_callables()
    """,
    ),
    (
        "tasker.handlers.registry.resolvers",
        """
    ClassLookupResolver: @name | @priority | can_resolve(definition, config=None) | resolve(definition, config=None)
    """,
    ),
    (
        "tasker.handlers.registry.invocation",
        """
    MethodDispatchWrapper: __init__(handler, target_method) | @handler | @target_method | call(context) | unwrap()
    """,
    ),
    (
        "tasker.handlers.registry.registry",
        """
    HandlerRegistry: __init__() | instance(skip_bootstrap=False) | reset_instance() | register(name, handler_class)
        | unregister(name) | resolve(handler_spec) | @resolver_chain | get_handler_class(name) | is_registered(name)
        | list_handlers() | handler_count() | clear() | discover_handlers(package_name, base_class=None) |
        bootstrap_handlers()
    """,
    ),
    (
        "tasker.domain_events",
        """
    EventDeclaration: name | condition = None | delivery_mode = None | publisher = None | schema_ = None | @schema
    StepResult: success | result = None | metadata = None
    PublishContext: event_name | step_result | event_declaration = None | step_context = None
    StepEventContext: task_uuid | step_uuid | step_name | namespace | correlation_id | result = None | metadata = {}
        | from_step_context(step_context, result=None, metadata=None)
    BasePublisher: @publisher_name | should_publish(ctx) | transform_payload(ctx) | additional_metadata(ctx) |
        before_publish(event_name, payload, metadata) | after_publish(event_name, payload, metadata) |
        on_publish_error(event_name, error, payload) | publish(ctx, event_name=None)
    DefaultPublisher: @publisher_name | transform_payload(ctx)
    BaseSubscriber: __init__() | subscribes_to() | handle(event) | @active | @subscriptions | before_handle(event) |
        after_handle(event) | on_handle_error(event, error) | matches(event_name) | start(poller) | stop() |
        handle_event_safely(event)
    InProcessDomainEventPoller: DEFAULT_POLL_INTERVAL_MS = 10 | DEFAULT_MAX_EVENTS_PER_POLL = 100 |
        __init__(polling_interval_ms=10, max_events_per_poll=100) | on_event(callback) | on_error(callback) |
        start() | stop(timeout=5.0) | @is_running | @stats
    PublisherRegistry: __init__() | instance() | reset() | register(publisher, name=None) | get(name) |
        get_or_default(name) | validate_required(names) | freeze() | unfreeze() | @is_frozen | list_publishers() |
        clear()
    SubscriberRegistry: __init__() | instance() | reset() | register(subscriber_class) |
        register_instance(subscriber, name=None) | start_all(poller) | stop_all() | list_registered() |
        @active_count | stats() | clear()
    """,
    ),
    (
        "tasker.logging",
        """
    -: log_error(message, fields=None) | log_warn(message, fields=None) | log_info(message, fields=None) |
        log_debug(message, fields=None) | log_trace(message, fields=None)
    """,
    ),
    (
        "tasker_core.client",
        """
    PaginationInfo: page = 0 | per_page = 50 | total_count = 0 | total_pages = 0 | has_next = False |
        has_previous = False | from_dict(data)
    TaskResponse: task_uuid = '' | name = '' | namespace = '' | version = '' | status = '' | created_at = '' |
        updated_at = '' | completed_at = None | context = {} | initiator = '' | source_system = '' | reason = '' |
        priority = None | tags = None | correlation_id = '' | parent_correlation_id = None | total_steps = 0 |
        pending_steps = 0 | in_progress_steps = 0 | completed_steps = 0 | failed_steps = 0 | ready_steps = 0 |
        execution_status = '' | recommended_action = '' | completion_percentage = 0.0 | health_status = '' |
        steps = [] | from_dict(data)
    TaskListResponse: tasks = [] | from_dict(data)
    StepResponse: step_uuid = '' | task_uuid = '' | name = '' | created_at = '' | updated_at = '' |
        completed_at = None | results = None | current_state = '' | dependencies_satisfied = False |
        retry_eligible = False | ready_for_execution = False | total_parents = 0 | completed_parents = 0 |
        attempts = 0 | max_attempts = 0 | last_failure_at = None | next_retry_at = None | last_attempted_at = None |
        from_dict(data)
    StepAuditResponse: audit_uuid = '' | workflow_step_uuid = '' | transition_uuid = '' | task_uuid = '' |
        recorded_at = '' | worker_uuid = None | correlation_id = None | success = False | execution_time_ms = None |
        result = None | step_name = '' | from_state = None | to_state = '' | from_dict(data)
    HealthResponse: healthy = False | status = '' | timestamp = '' | from_dict(data)
    """,
    ),
)
