//! Local time, in which mdadm prints the times of superblocks.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Returns by how many seconds local time (`TZ`, else `/etc/localtime`) is ahead at a time given in
/// seconds since 1970; 0 where the zone is not known.
pub(super) fn utc_offset() -> impl Fn(u64) -> i64 {
    let zone = TimeZone::try_system().unwrap_or(TimeZone::UTC);
    move |seconds| {
        let time = i64::try_from(seconds).ok().and_then(|s| Timestamp::from_second(s).ok());
        time.map_or(0, |time| zone.to_offset(time).seconds().into())
    }
}
