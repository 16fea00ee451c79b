//! Maps librdkafka errors to store errors, with advice.

use fetchwell_engine::ports::error::{StoreError, StoreErrorKind};
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};

use StoreErrorKind::{Bug, Incompatible, TooLarge, Transient};

use super::place::TopicAddress;
use super::producer::CONFIRMED_WITHIN;

/// Classifies librdkafka's codes. All other codes are transient: unreachable brokers, leader elections, missing
/// replicas, full disks, and a topic that is unknown until it has been created.
const KINDS: &[(Code, StoreErrorKind)] = &[
    (Code::Authentication, Incompatible),
    (Code::ClusterAuthorizationFailed, Incompatible),
    (Code::GroupAuthorizationFailed, Incompatible),
    (Code::IllegalSASLState, Incompatible),
    (Code::InvalidArgument, Incompatible),
    (Code::InvalidConfig, Incompatible),
    (Code::InvalidPartitions, Incompatible),
    (Code::InvalidTopic, Incompatible),
    (Code::NotImplemented, Incompatible),
    (Code::PolicyViolation, Incompatible),
    (Code::SaslAuthenticationFailed, Incompatible),
    (Code::SecurityDisabled, Incompatible),
    (Code::TopicAuthorizationFailed, Incompatible),
    (Code::UnknownProtocol, Incompatible),
    (Code::UnsupportedCompressionType, Incompatible),
    (Code::UnsupportedFeature, Incompatible),
    (Code::UnsupportedForMessageFormat, Incompatible),
    (Code::UnsupportedSASLMechanism, Incompatible),
    (Code::UnsupportedVersion, Incompatible),
    (Code::MessageBatchTooLarge, TooLarge),
    (Code::MessageSizeTooLarge, TooLarge),
    (Code::BadMessage, Bug),
    (Code::Conflict, Bug),
    (Code::InvalidMessageSize, Bug),
    (Code::InvalidRecord, Bug),
    (Code::InvalidRequest, Bug),
    (Code::InvalidRequiredAcks, Bug),
    (Code::InvalidTimestamp, Bug),
    (Code::InvalidType, Bug),
    (Code::State, Bug),
];

const CHECK: &str = "check that the servers run and can be reached";

impl TopicAddress {
    /// Converts a librdkafka error. All such errors are converted here.
    pub(super) fn fault(&self, error: KafkaError) -> StoreError {
        let advice = match code_of(&error) {
            Some(Code::MessageTimedOut) => {
                format!("not confirmed within {} s; {CHECK}", CONFIRMED_WITHIN.as_secs())
            }
            Some(
                Code::BrokerTransportFailure
                | Code::AllBrokersDown
                | Code::OperationTimedOut
                | Code::Resolve,
            ) => CHECK.to_owned(),
            Some(Code::UnknownTopic | Code::UnknownTopicOrPartition | Code::UnknownPartition) => {
                format!("there is no such topic; create it: {}", self.how_to_make_it())
            }
            Some(Code::TopicAuthorizationFailed | Code::ClusterAuthorizationFailed) => {
                "allow this program to write to the topic".to_owned()
            }
            Some(Code::Authentication | Code::SaslAuthenticationFailed) => {
                "check user and password".to_owned()
            }
            _ => String::new(),
        };
        StoreError::new(kind_of(&error), self.to_string()).with_source(error).with_advice(advice)
    }
}

pub(super) fn kind_of_code(code: Code) -> StoreErrorKind {
    KINDS.iter().find(|(known, _)| *known == code).map_or(Transient, |(_, kind)| *kind)
}

fn kind_of(error: &KafkaError) -> StoreErrorKind {
    match error {
        KafkaError::ClientConfig(..) => Incompatible,
        KafkaError::Nul(_) => Bug,
        error => code_of(error).map_or(Transient, kind_of_code),
    }
}

/// `rdkafka_error_code` does not return the code of `AdminOp` errors.
fn code_of(error: &KafkaError) -> Option<Code> {
    match error {
        KafkaError::AdminOp(code) => Some(*code),
        error => error.rdkafka_error_code(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_has_its_kind() {
        let place = TopicAddress { servers: "k:9092".to_owned(), topic: "pages".to_owned() };
        for (code, kind) in [
            (Code::BrokerTransportFailure, Transient),
            (Code::AllBrokersDown, Transient),
            (Code::Resolve, Transient),
            (Code::MessageTimedOut, Transient),
            (Code::OperationTimedOut, Transient),
            (Code::QueueFull, Transient),
            (Code::Fatal, Transient),
            (Code::UnknownTopicOrPartition, Transient),
            (Code::LeaderNotAvailable, Transient),
            (Code::NotLeaderForPartition, Transient),
            (Code::NotEnoughReplicas, Transient),
            (Code::KafkaStorageError, Transient),
            (Code::OutOfOrderSequenceNumber, Transient),
            (Code::ThrottlingQuotaExceeded, Transient),
            (Code::InvalidReplicationFactor, Transient),
            (Code::TopicAuthorizationFailed, Incompatible),
            (Code::SaslAuthenticationFailed, Incompatible),
            (Code::InvalidTopic, Incompatible),
            (Code::UnsupportedVersion, Incompatible),
            (Code::MessageSizeTooLarge, TooLarge),
            (Code::InvalidRecord, Bug),
            (Code::InvalidRequiredAcks, Bug),
        ] {
            for error in [KafkaError::MessageProduction(code), KafkaError::AdminOp(code)] {
                assert_eq!(place.fault(error).kind(), kind, "{code}");
            }
        }
        assert_eq!(place.fault(KafkaError::Canceled).kind(), Transient);
        let failed = KafkaError::ClientCreation("no thread".to_owned());
        assert_eq!(place.fault(failed).kind(), Transient);
    }
}
