"""ACLs, who may do what by them, and users who come in or do not."""

from tests.simulation.stories.telling import innocent, planted
from tests.simulation.workload.guards import (
    ALL,
    ALLOW,
    CLUSTER,
    CLUSTER_NAME,
    DENY,
    DESCRIBE,
    LITERAL,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
)

REFUSED = "TOPIC_AUTHORIZATION_FAILED"


def acl(name="t", operation=READ, permission=ALLOW, pattern=LITERAL, principal="User:ann", host="*"):
    return [TOPIC, name, pattern, principal, host, operation, permission]


def create(story, *acls, end="ok"):
    story.call("root", "create_acls", end, acls=acls)


def delete(story, *filters, end="ok", deleted=()):
    story.call("root", "delete_acls", end, {"deleted": deleted} if end == "ok" else {}, filters=filters)


def describe(story, *acls):
    story.call("root", "describe_acls", "ok", {"acls": acls})


def restart(story):
    story.note("broker", "broker_killed", node="broker")
    story.call("broker", "broker_started", "ok", node="broker", fsync="batch")


def ask(story, answer, operation=READ, name="t", user="ann", answers=("NONE",)):
    needs = [[[[operation, TOPIC, name]], REFUSED]]
    asked = {"user": user, "node": 1, "api": "Fetch", "about": name, "needs": needs, "answers": answers}
    story.call("asker", "asked", "ok", {"answer": answer}, **asked)


def ask_for_list(story, *shown, needs=()):
    among = [["t", [[DESCRIBE, TOPIC, "t"], [DESCRIBE, CLUSTER, CLUSTER_NAME]]]]
    asked = {"user": "ann", "node": 1, "api": "Metadata", "about": "all topics", "needs": needs, "among": among}
    story.call("asker", "listed", "ok", {"shown": shown}, **asked)


# ACLs ----------------------------------------------------------------------------------------------------------------


@planted("acl-forgotten")
def _what_was_made_is_not_there(story):
    create(story, acl())
    restart(story)
    describe(story)


@planted("acl-forgotten")
def _what_is_deleted_is_not_found(story):
    create(story, acl())
    delete(story, acl())


@planted("acl-forgotten")
def _half_of_a_request_is_there(story):
    create(story, acl(), acl("u"), end="info")
    restart(story)
    describe(story, acl())


@planted("acl-forgotten")
def _what_was_seen_after_a_restart_is_gone_after_the_next(story):
    create(story, acl(), end="info")
    restart(story)
    describe(story, acl())
    restart(story)
    describe(story)


@planted("acl-back")
def _what_was_deleted_is_there(story):
    create(story, acl())
    delete(story, acl(), deleted=[acl()])
    restart(story)
    describe(story, acl())


@planted("acl-back")
def _what_was_refused_is_there(story):
    create(story, acl(), end="fail")
    describe(story, acl())


@planted("acl-back")
def _what_was_not_there_after_a_restart_is_there_after_the_next(story):
    create(story, acl(), end="info")
    restart(story)
    describe(story)
    restart(story)
    describe(story, acl())


@innocent
def what_nobody_was_told_of_is_there_or_not(story):
    create(story, acl(), acl("u"))
    create(story, acl("v"), acl("w"), end="info")
    delete(story, acl(), acl("u"), end="info")
    restart(story)
    describe(story, acl("v"), acl("w"))
    restart(story)
    describe(story, acl("v"), acl("w"))


@innocent
def what_is_under_way_comes_before_the_next_restart(story):
    create(story, acl(), end="info")
    describe(story)
    describe(story, acl())


@innocent
def a_filter_deletes_what_it_means(story):
    create(story, acl(), acl("u", pattern=PREFIXED), acl(principal="User:bob"))
    meant = [TOPIC, None, None, "User:ann", None, None, None]
    delete(story, meant, deleted=[acl(), acl("u", pattern=PREFIXED)])
    describe(story, acl(principal="User:bob"))


@innocent
def a_filter_that_matches_means_what_decides(story):
    create(story, acl("*"), acl("te", pattern=PREFIXED), acl("u"))
    delete(story, [TOPIC, "ten", 2, None, None, None, None], deleted=[acl("*"), acl("te", pattern=PREFIXED)])
    describe(story, acl("u"))


# Who may do what -----------------------------------------------------------------------------------------------------


@planted("wrongly-allowed")
def _nobody_has_allowed_it(story):
    ask(story, "NONE")


@planted("wrongly-allowed")
def _what_was_deleted_allows_it(story):
    create(story, acl())
    delete(story, acl(), deleted=[acl()])
    ask(story, "NONE")


@planted("wrongly-allowed")
def _a_deny_loses(story):
    create(story, acl(), acl("*", ALL, DENY, principal="User:*"))
    ask(story, "NONE")


@planted("wrongly-allowed")
def _what_is_refused_tells_what_is_not_there(story):
    ask(story, "UNKNOWN_TOPIC_OR_PARTITION", DESCRIBE, answers=["UNKNOWN_TOPIC_OR_PARTITION"])


@planted("wrongly-allowed")
def _nobody_says_that_a_release_has_it_not(story):
    ask(story, "UNSUPPORTED_VERSION")


@innocent
def that_a_release_has_it_not_is_told_to_everybody(story):
    ask(story, "UNSUPPORTED_VERSION", answers=["GROUP_ID_NOT_FOUND", "UNSUPPORTED_VERSION"])


@planted("wrongly-allowed")
def _a_list_tells_of_what_may_not_be_described(story):
    ask_for_list(story, "t")


@planted("wrongly-allowed")
def _an_allow_of_elsewhere_counts(story):
    create(story, acl(host="203.0.113.9"))
    ask(story, "NONE")


@planted("wrongly-allowed")
def _who_may_write_nothing_writes_anything(story):
    create(story, acl("t", WRITE), acl("t", WRITE, DENY, PREFIXED))
    ask(story, "NONE", WRITE, None)


@planted("wrongly-refused")
def _what_was_made_does_not_count(story):
    create(story, acl())
    ask(story, REFUSED)


@planted("wrongly-refused")
def _a_prefix_does_not_count(story):
    create(story, acl("t", pattern=PREFIXED))
    ask(story, REFUSED, name="ten")


@planted("wrongly-refused")
def _who_may_read_may_not_describe(story):
    create(story, acl())
    ask(story, REFUSED, DESCRIBE)


@planted("wrongly-refused")
def _a_list_leaves_out_what_may_be_described(story):
    create(story, acl())
    ask_for_list(story)


@planted("wrongly-refused")
def _who_may_write_something_may_not_write_anything(story):
    create(story, acl("t", WRITE), acl("t", WRITE, DENY), acl("u", WRITE))
    ask(story, REFUSED, WRITE, None)


@innocent
def who_may_and_who_may_not(story):
    create(story, acl(), acl("u", WRITE), acl("ten", DESCRIBE, DENY), acl("te", ALL, pattern=PREFIXED))
    ask(story, "NONE")
    ask(story, "NONE", DESCRIBE)
    ask(story, REFUSED, WRITE)
    ask(story, REFUSED, user="bob")
    ask(story, "NONE", name="ten")
    ask(story, REFUSED, DESCRIBE, "ten")
    ask(story, "NONE", WRITE, None)
    ask_for_list(story, "t")


@innocent
def what_nobody_was_told_of_allows_or_not(story):
    create(story, acl(), end="info")
    ask(story, "NONE")
    ask(story, REFUSED)
    ask_for_list(story)
    create(story, acl(operation=ALL, permission=DENY), end="info")
    restart(story)
    describe(story, acl())
    ask(story, "NONE")
    ask_for_list(story, "t")


@innocent
def who_may_not_ask_is_told_of_nothing(story):
    create(story, acl())
    ask_for_list(story, needs=[[[[DESCRIBE, TOPIC, "u"]], REFUSED]])


# Users ---------------------------------------------------------------------------------------------------------------


def set_user(story, secret, end="ok", code=None):
    error = {"type": "tagwire.errors.KafkaError", "code": code, "message": ""}
    story.call("root", "set_user", end, {"error": error} if code else {}, user="dot", secret=secret)


def log_in(story, secret, answer):
    story.call("asker", "logged_in", "ok", {"answer": answer}, user="dot", secret=secret)


@planted("user-forgotten")
def _who_was_made_does_not_come_in(story):
    set_user(story, 1)
    restart(story)
    log_in(story, 1, answer=False)


@planted("user-forgotten")
def _who_is_to_be_deleted_is_not_there(story):
    set_user(story, 1)
    set_user(story, None, "fail", "RESOURCE_NOT_FOUND")


@planted("user-let-in")
def _who_was_deleted_comes_in(story):
    set_user(story, 1)
    set_user(story, None)
    log_in(story, 1, answer=True)


@planted("user-let-in")
def _an_old_secret_is_taken(story):
    set_user(story, 1)
    set_user(story, 2)
    log_in(story, 1, answer=True)


@planted("user-let-in")
def _who_did_not_come_in_does_after_the_next_restart(story):
    set_user(story, 1, "info")
    restart(story)
    log_in(story, 1, answer=False)
    log_in(story, 1, answer=True)


@innocent
def who_comes_in_and_who_does_not(story):
    log_in(story, 1, answer=False)
    set_user(story, None, "fail", "RESOURCE_NOT_FOUND")
    set_user(story, 1)
    log_in(story, 1, answer=True)
    set_user(story, 2, "info")
    log_in(story, 1, answer=True)
    restart(story)
    log_in(story, 2, answer=True)
    log_in(story, 1, answer=False)
    set_user(story, 3, "fail", "POLICY_VIOLATION")
    log_in(story, 2, answer=True)
