//! Members that could not be opened, as failures.

use std::io;

use braid_member::MemberError;

use crate::control::ErrorCode;
use crate::failure::Failure;

/// Returns the failure of a member that could not be opened, with the next step.
pub(super) fn member_failure(error: &MemberError) -> Failure {
    let no_memory = Failure::failed(error).code(ErrorCode::NoMemory);
    match error {
        MemberError::Open { source, .. } if source.kind() == io::ErrorKind::ResourceBusy => {
            Failure::failed(error).code(ErrorCode::InUse)
        }
        MemberError::Open { .. } => Failure::failed(error),
        MemberError::Locked { .. } => Failure::failed(error)
            .next("`braid status` shows whether a volume has it; `braid down NAME` ends that one")
            .code(ErrorCode::InUse),
        MemberError::Memory { .. } => no_memory.next("smaller sizes, or files instead of memory"),
        MemberError::Lock { .. } => no_memory.next(
            "`ulimit -l unlimited`, or LimitMEMLOCK=infinity in the service; or without `lock`",
        ),
        MemberError::HugePages { .. } => no_memory.next(
            "`sysctl vm.nr_hugepages=COUNT` makes the pool larger; without `huge` the kernel gives huge \
             pages where it has them",
        ),
        MemberError::Model { error: model } => Failure::usage(error).next(model.next()),
    }
}
