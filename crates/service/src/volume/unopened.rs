//! Members that could not be opened, as failures.

use std::io;

use braid_engine::decorators::StoreError;
use braid_member::MemberError;

use crate::control::ErrorCode;
use crate::failure::Failure;

/// Returns the failure of a member that could not be opened, with the next step.
pub(crate) fn member_failure(error: &MemberError) -> Failure {
    let no_memory = Failure::failed(error).code(ErrorCode::NoMemory);
    match error {
        MemberError::Open { source, .. } if source.kind() == io::ErrorKind::ResourceBusy => {
            Failure::failed(error).code(ErrorCode::InUse)
        }
        MemberError::Open { .. } => Failure::failed(error),
        MemberError::Locked { .. } => Failure::failed(error)
            .next("`braid status` shows whether a volume has it; `braid down NAME` ends that one")
            .code(ErrorCode::InUse),
        MemberError::Remote { .. } => Failure::failed(error)
            .next("start its server, or correct the address; `nbdinfo URI` asks the server without braid"),
        MemberError::RemoteReadOnly { .. } => Failure::refused(error)
            .next("--read-only; or cow(…, store=FILE) in front of it, which keeps changes in a file"),
        MemberError::Rbd { error: image, .. } if image.is_locked() => {
            Failure::refused(error).next(image.next()).code(ErrorCode::InUse)
        }
        MemberError::Rbd { error: image, .. } => Failure::failed(error).next(image.next()),
        MemberError::Memory { .. } => no_memory.next("smaller sizes, or files instead of memory"),
        MemberError::Lock { .. } => no_memory.next(
            "`ulimit -l unlimited`, or LimitMEMLOCK=infinity in the service; or without `lock`",
        ),
        MemberError::HugePages { .. } => no_memory.next(
            "`sysctl vm.nr_hugepages=COUNT` makes the pool larger; without `huge` the kernel gives huge \
             pages where it has them",
        ),
        MemberError::Store { why: StoreError::Foreign, .. } => Failure::refused(error)
            .next("another path as store=: a file that is not there, or is empty, becomes one"),
        MemberError::Store { why: StoreError::OtherSize { .. }, .. } => Failure::refused(error)
            .next("the store of this device; or another path as store=, for one without changes"),
        MemberError::Store { .. } => Failure::refused(error)
            .next("a copy of the store; or another path as store=, for one without changes"),
        MemberError::NoStore { .. } => Failure::refused(error).next(
            "the path of the store; without --read-only it is made; or the device without cow(…)",
        ),
        MemberError::Model { error: model } => Failure::usage(error).next(model.next()),
    }
}
