//! Requests to the device.

use std::sync::Arc;

use braid_block::{Io, Limits};
use braid_engine::{Dev, Pending};
use braid_nbd::protocol::{CheckedRequest, ExportInfo};

use super::write::Admitted;
use super::{Session, data_bytes};
use crate::canary::Canary;
use braid_uring::Stream;

impl<S: Stream> Session<S> {
    /// Goes on with the device that is offered now, if the client need not know, or is told: of another size others were
    /// not. Between two requests: a write that is coming in ends where it began.
    #[cold]
    pub(super) fn follow(&mut self) {
        let dev = self.parts.offered.dev();
        let shape = |dev: &Dev| (dev.limits().size, dev.limits().logical_block);
        if self.parts.is_told {
            let Limits { size: size_bytes, read_only, .. } = *dev.limits();
            let known = ExportInfo::clone(&self.parts.export);
            self.parts.export = Arc::new(ExportInfo { size_bytes, read_only, ..known });
            self.parts.dev = dev;
        } else if shape(&dev) == shape(&self.parts.dev) {
            self.parts.dev = dev;
        }
        self.parts.changes = self.parts.offered.changes();
    }

    #[inline]
    pub(super) fn start(&mut self, request: CheckedRequest, permit: Option<Admitted>, io: Io) {
        let pending = self.parts.dev.start(io);
        self.answer(request, permit, pending);
    }

    /// Answers a request that is done, or waits for it.
    #[inline]
    pub(super) fn answer(
        &mut self,
        request: CheckedRequest,
        permit: Option<Admitted>,
        pending: Pending,
    ) {
        match pending {
            Pending::Ready(Some(completion)) => self.reply(request, completion),
            pending => {
                self.in_flight_bytes += data_bytes(&request.command);
                let permit = permit.filter(|_| !Canary::PermitGivenBackEarly.is_planted());
                self.in_flight.push((request, permit), pending);
            }
        }
    }
}
