"""A small catalog such as GitHub's, with a service behind it that keeps count of its calls."""

from semcache import Catalog, Operation
from semcache.canonical import Json, JsonObject
from semcache.catalog.operation import Call

TEXT: JsonObject = {"type": "string"}
WHOLE: JsonObject = {"type": "integer"}
ISSUE: JsonObject = {
    "type": "object",
    "properties": {
        "number": WHOLE,
        "title": TEXT,
        "state": TEXT,
        "labels": {"type": "array", "items": TEXT},
        "created_at": TEXT,
    },
}
ISSUES: list[Json] = [
    {"number": 3, "title": "c", "state": "OPEN", "labels": ["bug"], "created_at": "2024-01-03"},
    {"number": 1, "title": "b", "state": "CLOSED", "labels": [], "created_at": "2024-01-01"},
    {"number": 2, "title": "a", "state": "OPEN", "labels": ["docs"], "created_at": "2024-01-02"},
]


def schema(*required: str, **properties: Json) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(required)}


class GitHub:
    """The service: `calls` has every call, in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, JsonObject]] = []
        self.broken: set[str] = set()
        """Operations that fail."""

    @property
    def catalog(self) -> Catalog:
        page: JsonObject = {"type": "integer", "minimum": 1, "description": "Which page."}
        size: JsonObject = {"type": "integer", "minimum": 1, "maximum": 100}
        where = {"owner": TEXT, "repo": TEXT}
        listed: JsonObject = {"type": "array", "items": ISSUE}
        return Catalog(
            [
                Operation(
                    "list_issues",
                    "List the issues of a repository.",
                    schema(
                        "owner",
                        "repo",
                        **where,
                        state={"type": "string", "enum": ["OPEN", "CLOSED"]},
                        labels={"type": "array", "items": TEXT},
                        page=page,
                        perPage={**size, "description": "Results per page."},
                    ),
                    listed,
                    effect="read",
                    call=self._call("list_issues", ISSUES),
                ),
                Operation(
                    "list_issue_types",
                    "List the types of issues of an organization.",
                    schema("owner", owner=TEXT),
                    effect="read",
                    call=self._call("list_issue_types", ["Bug", "Task"]),
                ),
                Operation(
                    "list_branches",
                    "List the branches of a repository.",
                    schema("owner", "repo", **where, page=page, perPage=size),
                    effect="read",
                    call=self._call("list_branches", ["main"]),
                ),
                Operation(
                    "get_issue",
                    "Get one issue of a repository.",
                    schema("owner", "repo", "issue_number", **where, issue_number=WHOLE),
                    ISSUE,
                    effect="read",
                    call=self._call("get_issue", ISSUES[0]),
                ),
                Operation(
                    "create_issue",
                    "Create an issue in a repository.",
                    schema("owner", "repo", "title", **where, title=TEXT, body=TEXT),
                    ISSUE,
                    effect="write",
                    call=self._call("create_issue", ISSUES[0]),
                ),
            ]
        )

    def _call(self, name: str, output: Json) -> Call:
        def call(given: JsonObject) -> object:
            self.calls.append((name, given))
            if name in self.broken:
                raise OSError("no network")
            return output

        return call
