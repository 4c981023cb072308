/* The operations that a client may do when there is no authorizer: all that Kafka has for that kind
 * of resource, as bits by AclOperation's code (KIP-430). */
#ifndef OTTLA_BROKER_API_AUTHORIZED_H
#define OTTLA_BROKER_API_AUTHORIZED_H

enum acl_operation {
    ACL_READ = 3,
    ACL_WRITE = 4,
    ACL_CREATE = 5,
    ACL_DELETE = 6,
    ACL_ALTER = 7,
    ACL_DESCRIBE = 8,
    ACL_CLUSTER_ACTION = 9,
    ACL_DESCRIBE_CONFIGS = 10,
    ACL_ALTER_CONFIGS = 11,
    ACL_IDEMPOTENT_WRITE = 12,
};

enum authorized_operations {
    AUTHORIZED_CLUSTER = 1 << ACL_CREATE | 1 << ACL_ALTER | 1 << ACL_DESCRIBE |
                         1 << ACL_CLUSTER_ACTION | 1 << ACL_DESCRIBE_CONFIGS |
                         1 << ACL_ALTER_CONFIGS | 1 << ACL_IDEMPOTENT_WRITE,
    AUTHORIZED_TOPIC = 1 << ACL_READ | 1 << ACL_WRITE | 1 << ACL_CREATE | 1 << ACL_DELETE |
                       1 << ACL_ALTER | 1 << ACL_DESCRIBE | 1 << ACL_DESCRIBE_CONFIGS |
                       1 << ACL_ALTER_CONFIGS,
    AUTHORIZED_GROUP = 1 << ACL_READ | 1 << ACL_DELETE | 1 << ACL_DESCRIBE |
                       1 << ACL_DESCRIBE_CONFIGS | 1 << ACL_ALTER_CONFIGS,
};

#endif
