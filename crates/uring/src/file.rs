//! Reads, writes and their like at offsets of files and block devices.

use braid_block::{Errno, Payload};
use braid_engine::{Pending, Ticket};

use crate::executor::Handle;
use crate::fd::Fd;
use crate::operation::{Operation, Transfer};

impl Handle {
    /// Fills `payload` from `offset` on. A file that ends before is an error.
    pub fn read_at(&self, fd: &Fd, offset: u64, payload: Payload) -> Pending {
        self.transfer(Transfer::new(fd.clone(), false, false, offset, payload))
    }

    /// Stores `payload` at `offset`; with `durable`, on stable storage before it completes.
    pub fn write_at(&self, fd: &Fd, offset: u64, payload: Payload, durable: bool) -> Pending {
        self.transfer(Transfer::new(fd.clone(), true, durable, offset, payload))
    }

    /// Makes completed writes to `fd` durable (`fdatasync`).
    pub fn sync(&self, fd: &Fd) -> Pending {
        self.ticket(Operation::Sync(fd.clone()))
    }

    /// `fallocate` with the `FALLOC_FL_*` bits of `mode`.
    pub async fn fallocate(&self, fd: &Fd, mode: i32, offset: u64, len: u64) -> Result<(), Errno> {
        let operation = Operation::Fallocate { fd: fd.clone(), mode, offset, len };
        match self.submit(operation).await.0 {
            result if result < 0 => Err(Errno::from_raw(-result)),
            _ => Ok(()),
        }
    }

    /// Runs a closure that may block on another thread.
    pub async fn blocking(
        &self,
        job: impl FnOnce() -> std::io::Result<()> + Send + 'static,
    ) -> Result<(), Errno> {
        let answer = move || match job() {
            Ok(()) => 0,
            Err(error) => -Errno::from(error).raw(),
        };
        match self.submit_blocking(Box::new(answer)).await.0 {
            result if result < 0 => Err(Errno::from_raw(-result)),
            _ => Ok(()),
        }
    }

    fn transfer(&self, transfer: Transfer) -> Pending {
        self.ticket(Operation::Transfer(transfer))
    }

    fn ticket(&self, operation: Operation) -> Pending {
        let id = self.start(operation);
        Pending::Ticket(Ticket::new(self.table(), id))
    }
}
