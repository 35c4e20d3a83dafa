"""The calls of Admin about who may do what, and how much of it: ACLs, SCRAM users, client quotas."""

from __future__ import annotations

from collections.abc import Iterable

from tagwire.client import arguments
from tagwire.client.admin.acls import AclBinding, AclBindingFilter
from tagwire.client.admin.face import AdminFace
from tagwire.client.admin.quotas import ClientQuotaAlteration, ClientQuotaEntity, ClientQuotaFilter
from tagwire.client.admin.scram_users import ScramCredentialInfo, UserScramCredentialAlteration


class AccessCalls(AdminFace):
    """ACLs, SCRAM users and client quotas."""

    def describe_acls(self, acl_filter: AclBindingFilter | None = None) -> list[AclBinding]:
        """ACLs, by resource.

        Args:
            acl_filter: which; None takes all.

        Raises:
            KafkaError: SECURITY_DISABLED where the cluster has no authorizer, CLUSTER_AUTHORIZATION_FAILED, ...
            ConfigError: `acl_filter` means nothing. UnsupportedVersionError: the broker is older than Kafka 2.0.
        """
        return self._network.run(self._core.describe_acls(acl_filter))

    def create_acls(self, acls: AclBinding | Iterable[AclBinding]) -> None:
        """Creates ACLs; one that is there already stays.

            admin.create_acls(AclBinding(ResourcePattern("topic", "orders"), AccessControlEntry("User:alice", "read")))

        Args:
            acls: one or several.

        Raises:
            KafkaError: with the code of the first ACL that was refused, by name as the others are. What was not refused
                is there. SECURITY_DISABLED where the cluster has no authorizer.
            ConfigError: there can be no such ACL. UnsupportedVersionError: the broker is older than Kafka 2.0.
        """
        self._network.run(self._core.create_acls(acls))

    def delete_acls(
        self, filters: AclBindingFilter | Iterable[AclBindingFilter]
    ) -> dict[AclBindingFilter, list[AclBinding]]:
        """Deletes all ACLs that one of the filters means.

        Args:
            filters: one or several; `AclBindingFilter()` means all there are.

        Returns:
            What is gone, by filter.

        Raises:
            KafkaError: as `create_acls`. ConfigError: `filters` mean nothing.
            UnsupportedVersionError: the broker is older than Kafka 2.0.
        """
        return self._network.run(self._core.delete_acls(filters))

    def describe_user_scram_credentials(
        self, users: arguments.Names | None = None
    ) -> dict[str, list[ScramCredentialInfo]]:
        """The mechanisms of SCRAM by which users can come in. Salts and keys are never told.

        Args:
            users: one or several; None takes all.

        Raises:
            KafkaError: RESOURCE_NOT_FOUND naming a user without a credential, or another refusal.
            ConfigError: `users` mean nothing. UnsupportedVersionError: the broker is older than Kafka 2.7.
        """
        return self._network.run(self._core.describe_user_scram_credentials(users))

    def alter_user_scram_credentials(
        self, alterations: UserScramCredentialAlteration | Iterable[UserScramCredentialAlteration]
    ) -> None:
        """Sets passwords of SCRAM users, or takes them away. Several mechanisms of one user go one after the other.

        A password is salted before it is sent, and with random salt. Whoever reads the request could still come in with
        what it holds: use a connection with TLS.

        Args:
            alterations: `UserScramCredentialUpsertion` and `UserScramCredentialDeletion`, one or several.

        Raises:
            KafkaError: with the code of the first user that was refused, by name as the others are; RESOURCE_NOT_FOUND
                for a credential to delete that is not there. What was not refused is done: of several a
                `PartlyRefusedError` tells of each, by user and mechanism.
            ConfigError: a user without a name, a mechanism that is not SCRAM's, an empty password, iterations out of
                bounds. UnsupportedVersionError: the broker is older than Kafka 2.7.
        """
        self._network.run(self._core.alter_user_scram_credentials(alterations))

    def describe_client_quotas(
        self, quota_filter: ClientQuotaFilter | None = None
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """Quotas that are set, by whom they are of.

        Args:
            quota_filter: whose; None takes all.

        Raises:
            KafkaError: the request is refused. ConfigError: `quota_filter` means nothing. UnsupportedVersionError: the
            broker is older than Kafka 2.6.
        """
        return self._network.run(self._core.describe_client_quotas(quota_filter))

    def alter_client_quotas(
        self, alterations: ClientQuotaAlteration | Iterable[ClientQuotaAlteration], *, validate_only: bool = False
    ) -> None:
        """Sets quotas, and leaves the others of an entity as they are.

            admin.alter_client_quotas(
                ClientQuotaAlteration(ClientQuotaEntity(user="alice"), {"producer_byte_rate": 1048576})
            )

        Args:
            alterations: one or several, each of another entity.
            validate_only: checks whether it could be done, and changes nothing.

        Raises:
            KafkaError: with the code of the first entity that was refused, by name as the others are.
            ConfigError: there is no such entity or limit. UnsupportedVersionError: the broker is older than Kafka 2.6.
        """
        self._network.run(self._core.alter_client_quotas(alterations, validate_only=validate_only))
