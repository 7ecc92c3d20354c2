"""Operations of templates."""

from __future__ import annotations

from typing import Annotated

from tasker.operations.operation import Body, Endpoint, Param
from tasker.operations.permissions import Permission
from tasker.views.deployments import Deployment
from tasker.views.templates import Registration, TemplateDetail, TemplatePage, TemplateValidation

TEMPLATES = "/v1/templates"
TEMPLATE = TEMPLATES + "/{namespace}/{name}/{version}"
Name = Annotated[str | None, Param(max_length=255)]
Part = Annotated[str, Param(max_length=255)]
Text = Annotated[str, Param("yaml", max_length=1_000_000, description="One template, or several documents.")]
Environment = Annotated[
    str | None, Param(min_length=1, max_length=255, description="Apply the overrides of this environment.")
]
Force = Annotated[
    bool, Param(description="Replace a version whose content differs; running tasks keep the old content.")
]


class TemplateOperations:
    """Operations of templates, as clients have them."""

    @Endpoint("GET", TEMPLATES, Permission.TEMPLATES_READ, "template_texts.page", confines=True)
    async def list_templates(
        self,
        namespace: Name = None,
        *,
        name: Annotated[str | None, Param(max_length=255, description="Name of the template.")] = None,
        page: Annotated[int, Param(at_least=0, at_most=100_000, description="Number of the page, from 0.")] = 0,
        per_page: Annotated[int, Param(at_least=1, at_most=500)] = 50,
        cursor: Annotated[
            str | None,
            Param(
                max_length=5000,
                description="`pagination.next_cursor` of the previous page: each page costs the same; `page` is "
                "omitted.",
            ),
        ] = None,
    ) -> TemplatePage:
        """Return the registered versions of templates, by namespace and name; counted to 10,000.

        `namespaces` are those of this page.

        Raises `UsageError` for an invalid cursor.
        """

    @Endpoint("GET", TEMPLATE, Permission.TEMPLATES_READ, "template_texts.detail", errors=(404,))
    async def get_template(self, namespace: Part, name: Part, version: Part) -> TemplateDetail:
        """Return one template with an ETag, which changes when the template's content changes.

        Raises `TemplateNotFound`.
        """

    @Endpoint(
        "POST",
        TEMPLATES,
        Permission.TEMPLATES_REGISTER,
        "template_texts.register",
        confines=True,
        operates=True,
        body=Body("TemplateText", "Templates to register, as YAML."),
        status=201,
        errors=(422,),
    )
    async def register_templates(
        self,
        text: Text,
        environment: Environment = None,
        *,
        force: Force = False,
        validate_only: Annotated[bool, Param(description="Report problems, and register nothing.")] = False,
    ) -> Registration:
        """Register templates from YAML, all or none; 422 with every problem of the text.

        Raises `TemplateError` with every problem, `UsageError` for an unknown environment.
        """

    @Endpoint(
        "POST",
        TEMPLATES + "/plan",
        Permission.TEMPLATES_READ,
        "deployments.plan",
        confines=True,
        body=Body("DeploymentText", "Templates to compare with the registered ones, as YAML."),
        repeatable=True,
        errors=(422,),
    )
    async def plan_templates(self, text: Text, environment: Environment = None, *, force: Force = False) -> Deployment:
        """Return what registering templates would change: for callers, handlers, open tasks and live workers.

        Nothing is registered. `token` is for `POST /v1/templates/apply` with the same text.

        Raises `TemplateError` with every problem, `UsageError` for an unknown environment.
        """

    @Endpoint(
        "POST",
        TEMPLATES + "/apply",
        Permission.TEMPLATES_REGISTER,
        "deployments.apply",
        confines=True,
        operates=True,
        body=Body("PlannedDeployment", "Templates to register, and the token of their plan."),
        errors=(409, 422),
    )
    async def apply_templates(
        self,
        text: Text,
        token: Annotated[str, Param(min_length=1, max_length=255, description="`token` of the plan.")],
        environment: Environment = None,
        *,
        force: Force = False,
    ) -> Registration:
        """Register the templates of a plan in one transaction, all or none.

        409 if a version of one of them was registered since the plan was made; then nothing is registered.

        Raises `RegistryChanged`, `TemplateError` with every problem, `UsageError` for an unknown environment.
        """

    @Endpoint(
        "POST",
        TEMPLATE + "/validate",
        Permission.TEMPLATES_VALIDATE,
        "template_texts.validation",
        repeatable=True,
        errors=(404,),
    )
    async def validate_template(self, namespace: Part, name: Part, version: Part) -> TemplateValidation:
        """Return whether live workers that serve the namespace have every handler of a template.

        Raises `TemplateNotFound`.
        """
