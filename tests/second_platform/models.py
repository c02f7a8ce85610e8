"""The help desk's models over the tables that it has; below the line, what history access takes."""

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.db.models import Q

from history_access.models import AbstractMessage, AbstractSession, AbstractTurn
from history_access.models.conversations import MOST_TOOL_NAMES, TOOL_NAME_CHARACTERS
from history_access.models.text import PartsText, ToolNames


class Firm(models.Model):
    firm_no = models.IntegerField(primary_key=True)
    label = models.TextField()
    zone = models.TextField()

    class Meta:
        managed = False
        db_table = "desk_firms"


class Staff(AbstractBaseUser):
    """People log in by `login`; who has left is neither deleted nor made "inactive" as Django means it."""

    staff_no = models.IntegerField(primary_key=True)
    login = models.CharField(max_length=50, unique=True)
    full_name = models.TextField()
    password = models.CharField(max_length=128, db_column="secret")
    last_login = models.DateTimeField(null=True, db_column="seen")
    state = models.TextField()

    objects = BaseUserManager()
    USERNAME_FIELD = "login"

    class Meta:
        managed = False
        db_table = "desk_staff"

    def get_full_name(self):
        return self.full_name

    def has_perm(self, permission, obj=None):
        """Rights that stand above all firms are those of a team that has none."""
        return Member.objects.filter(
            staff=self, team__firm=None, role__in=RoleRight.objects.filter(name=permission).values("role")
        ).exists()


class Bot(models.Model):
    bot_no = models.IntegerField(primary_key=True)
    workspace = models.ForeignKey(Firm, models.DO_NOTHING, db_column="firm_no")
    nick = models.TextField()

    class Meta:
        managed = False
        db_table = "desk_bots"


class Client(models.Model):
    client_no = models.IntegerField(primary_key=True)
    firm = models.ForeignKey(Firm, models.DO_NOTHING, db_column="firm_no")
    label = models.TextField()

    class Meta:
        managed = False
        db_table = "desk_clients"


class Team(models.Model):
    """Of a firm, of one of its bots, or of the desk as a whole."""

    team_no = models.IntegerField(primary_key=True)
    firm = models.ForeignKey(Firm, models.DO_NOTHING, db_column="firm_no", null=True)
    bot = models.ForeignKey(Bot, models.DO_NOTHING, db_column="bot_no", null=True)

    class Meta:
        managed = False
        db_table = "desk_teams"


class RoleRight(models.Model):
    right_no = models.IntegerField(primary_key=True)
    role = models.TextField()
    name = models.TextField()

    class Meta:
        managed = False
        db_table = "desk_role_rights"


class Member(models.Model):
    member_no = models.IntegerField(primary_key=True)
    team = models.ForeignKey(Team, models.DO_NOTHING, db_column="team_no")
    staff = models.ForeignKey(Staff, models.DO_NOTHING, db_column="staff_no")
    role = models.TextField()

    class Meta:
        managed = False
        db_table = "desk_members"


class Rule(models.Model):
    """What starts a bot by itself."""

    rule_no = models.IntegerField(primary_key=True)
    agent = models.ForeignKey(Bot, models.DO_NOTHING, db_column="bot_no")
    label = models.TextField()
    hooked = models.BooleanField()
    owner = models.ForeignKey(Staff, models.DO_NOTHING, db_column="owner_no", null=True)

    class Meta:
        managed = False
        db_table = "desk_rules"

    @classmethod
    def webhooks(cls):
        return Q(hooked=True)


# What history access takes.


class Thread(AbstractSession):
    thread_no = models.IntegerField(primary_key=True)
    workspace = models.ForeignKey(Firm, models.DO_NOTHING, db_column="firm_no")
    agent = models.ForeignKey(Bot, models.DO_NOTHING, db_column="bot_no")
    account = models.ForeignKey(Client, models.DO_NOTHING, db_column="client_no", null=True)
    person = models.ForeignKey(Staff, models.DO_NOTHING, db_column="staff_no", null=True)
    title = models.TextField(db_column="subject", null=True)
    started_at = models.DateTimeField(db_column="opened")
    last_moved_at = models.DateTimeField(db_column="moved")
    message_count = models.IntegerField(db_column="entries", default=0)
    trimmed_before = models.IntegerField(db_column="kept_from", default=1)
    summary = models.TextField(db_column="digest", null=True)
    summary_through = models.IntegerField(db_column="digest_to", null=True)
    deleted_at = None
    status = models.TextField(default="open")

    workspace_name = "workspace__label"
    time_zone = "workspace__zone"
    agent_name = "agent__nick"
    account_name = "account__label"
    person_name = "person__full_name"

    class Meta:
        managed = False
        db_table = "desk_threads"

    @classmethod
    def not_deleted(cls):
        return ~Q(status="deleted")


class Parts(AbstractMessage):
    """One table of entries, each a list of parts: texts, images, calls of tools."""

    entry_no = models.IntegerField(primary_key=True)
    workspace = models.ForeignKey(Firm, models.DO_NOTHING, db_column="firm_no")
    number = models.IntegerField(db_column="place")
    role = models.TextField(db_column="kind")
    hidden = text = tool_calls = None
    parts = models.JSONField(null=True)
    flags = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_column="written")

    class Meta:
        abstract = True

    @classmethod
    def readable(cls):
        return Q(role__in=("user", "assistant")) & ~Q(flags__has_key="internal")

    @classmethod
    def by_agent(cls):
        return Q(role="assistant")

    @classmethod
    def words(cls):
        return PartsText("parts")

    @classmethod
    def tool_names(cls):
        return ToolNames("parts", kind="call", most=MOST_TOOL_NAMES + 1, length=TOOL_NAME_CHARACTERS + 1)


class Entry(Parts):
    session = models.ForeignKey(Thread, models.DO_NOTHING, db_column="thread_no")

    class Meta:
        managed = False
        db_table = "desk_entries"


class Run(AbstractTurn):
    run_no = models.IntegerField(primary_key=True)
    workspace = models.ForeignKey(Firm, models.DO_NOTHING, db_column="firm_no")
    session = models.ForeignKey(Thread, models.DO_NOTHING, db_column="thread_no")
    sender = models.ForeignKey(Staff, models.DO_NOTHING, db_column="staff_no", null=True)
    trigger = models.ForeignKey(Rule, models.DO_NOTHING, db_column="rule_no", null=True)
    started_at = models.DateTimeField(db_column="began")
    ended_at = None
    state = models.TextField(default="running")

    trigger_name = "trigger__label"

    class Meta:
        managed = False
        db_table = "desk_runs"

    @classmethod
    def live(cls):
        return Q(state="running")


# The same desk without clients, digests and rules, over views: what a platform lacks is NULL or None.


class PlainThread(AbstractSession):
    thread_no = models.IntegerField(primary_key=True)
    workspace_id = models.IntegerField(db_column="firm_no")
    agent_id = models.IntegerField(db_column="bot_no")
    account_id = models.IntegerField(db_column="client_no", null=True)
    person_id = models.IntegerField(db_column="staff_no", null=True)
    title = models.TextField(db_column="subject", null=True)
    started_at = models.DateTimeField(db_column="opened")
    last_moved_at = models.DateTimeField(db_column="moved")
    message_count = models.IntegerField(db_column="entries")
    trimmed_before = summary = summary_through = deleted_at = None
    status = models.TextField()

    workspace_name = time_zone = agent_name = account_name = person_name = None

    class Meta:
        managed = False
        db_table = "desk_plain_threads"

    @classmethod
    def not_deleted(cls):
        return ~Q(status="deleted")


class PlainEntry(Parts):
    session = models.ForeignKey(PlainThread, models.DO_NOTHING, db_column="thread_no", db_constraint=False)

    class Meta:
        managed = False
        db_table = "desk_entries"


class PlainRun(AbstractTurn):
    run_no = models.IntegerField(primary_key=True)
    workspace_id = models.IntegerField(db_column="firm_no")
    session = models.ForeignKey(PlainThread, models.DO_NOTHING, db_column="thread_no", db_constraint=False)
    sender_id = models.IntegerField(db_column="staff_no", null=True)
    trigger_id = models.IntegerField(db_column="rule_no", null=True)
    started_at = ended_at = None
    state = models.TextField()

    trigger_owner = trigger_name = None

    class Meta:
        managed = False
        db_table = "desk_plain_runs"

    @classmethod
    def live(cls):
        return Q(state="running")
