//! Texts in the shape of smartmontools 7, written for this (`testdata/smart`), and what becomes of them.

use braid_seed::Rng;

use super::*;

macro_rules! golden {
    ($name:literal) => {
        include_bytes!(concat!("../../../testdata/smart/", $name, ".json")).as_slice()
    };
}

const ALL: [(&[u8], i32); 8] = [
    (golden!("ata-well"), 0),
    (golden!("ata-failing"), 216),
    (golden!("nvme-well"), 0),
    (golden!("nvme-worn"), 8),
    (golden!("nvme-warm"), 8),
    (golden!("scsi"), 0),
    (golden!("usb-bridge"), 1),
    (golden!("standby"), 2),
];

fn parsed(text: &[u8], status: i32) -> SmartStatus {
    parse_smart(text, status, 7).expect("an answer")
}

#[test]
fn an_ata_disk_says_its_sectors_its_temperature_and_its_verdict() {
    let well = parsed(golden!("ata-well"), 0);
    let wanted = SmartStatus {
        seen: 7,
        passed: Some(true),
        reallocated_sectors: Some(0),
        pending_sectors: Some(0),
        uncorrectable: Some(0),
        temperature_celsius: Some(34),
        temperature_limit_celsius: Some(60),
        power_on_hours: Some(26_733),
        ..SmartStatus::default()
    };
    assert_eq!(well, wanted);
    // What was so once (bits 5 to 7) is no warning.
    assert_eq!(parsed(golden!("ata-well"), 0b1110_0000), wanted);
    let failing = parsed(golden!("ata-failing"), 216);
    assert_eq!(
        failing.failing,
        [
            "its overall health is: failed",
            "attribute 5 (Reallocated_Sector_Ct) is at its threshold"
        ]
    );
    assert_eq!(
        failing.warnings,
        [
            "attribute 190 (Airflow_Temperature_Cel) is at its threshold",
            "3946 sectors were reallocated",
            "64 sectors cannot be read, and wait to be reallocated",
            "64 errors could not be corrected",
            "it has 67 °C, and 60 °C is its limit",
        ]
    );
}

#[test]
fn the_exit_status_is_believed_where_the_text_says_nothing() {
    let text = br#"{"smart_status":{}}"#;
    assert!(parse_smart(text, 0, 7).is_err_and(|why| why.contains("nothing by SMART")));
    let failing = parsed(text, FAILING).failing;
    assert_eq!(failing, ["its overall health is: failed"]);
    let failing = parsed(golden!("ata-well"), AT_THRESHOLD).failing;
    assert_eq!(failing, ["a pre-failure attribute is at its threshold"]);
    // Some of what was asked for is not known to the disk (bit 2): the rest is an answer.
    assert_eq!(parsed(golden!("ata-well"), 1 << 2).passed, Some(true));
}

#[test]
fn an_nvme_disk_says_its_media_errors_and_its_endurance() {
    let well = parsed(golden!("nvme-well"), 0);
    assert_eq!((well.media_errors, well.percentage_used), (Some(0), Some(12)));
    assert_eq!(well.temperature_limit_celsius, Some(84));
    assert!(well.failing.is_empty() && well.warnings.is_empty(), "{well:?}");
    let worn = parsed(golden!("nvme-worn"), 8);
    assert_eq!(worn.failing, ["its spare blocks run out", "it is degraded by errors"]);
    assert_eq!(worn.warnings, ["17 media errors", "103 % of its endurance is used"]);
    let warm = parsed(golden!("nvme-warm"), 8);
    assert_eq!(warm.failing, [""; 0], "a warm disk does not fail");
    assert_eq!(warm.warnings, ["it has 83 °C, and 80 °C is its limit"]);
}

#[test]
fn a_scsi_disk_says_its_grown_defects_and_what_it_could_not_correct() {
    let scsi = parsed(golden!("scsi"), 0);
    assert_eq!((scsi.reallocated_sectors, scsi.uncorrectable), (Some(14), Some(3)));
    assert_eq!(scsi.temperature_limit_celsius, Some(65));
    assert_eq!(scsi.failing, [""; 0]);
    assert_eq!(scsi.warnings, ["14 sectors were reallocated", "3 errors could not be corrected"]);
}

#[test]
fn whoever_cannot_be_asked_is_told_with_what_smartctl_said() {
    let why = |text, status| parse_smart(text, status, 7).expect_err("no answer");
    assert_eq!(
        why(golden!("usb-bridge"), 1),
        "smartctl: /dev/sdd: Unknown USB bridge [0x0781:0x5581 (0x100)]"
    );
    assert_eq!(why(golden!("standby"), 2), "smartctl: Device is in STANDBY mode, exit(2)");
    assert!(why(b"{}", 2).contains("or it sleeps"));
    assert!(why(b"Segmentation fault", 0).contains("is not understood"));
    assert!(why(b"", 0).contains("is not understood"));
    let colours = br#"{"smartctl":{"messages":[{"string":"\u001b[31mno\n"},{"string":7}]}}"#;
    assert_eq!(why(colours, 1), "smartctl: [31mno");
    let long = format!(r#"{{"smartctl":{{"messages":[{{"string":"{}"}}]}}}}"#, "a".repeat(5000));
    assert!(why(long.as_bytes(), 1).len() < 300);
    let deep = "[".repeat(100_000);
    assert!(why(deep.as_bytes(), 0).contains("is not understood"));
}

/// Whatever is printed, there is an answer or a reason, neither of which is long or carries an order for a
/// terminal.
#[test]
fn bytes_that_were_changed_break_nothing() {
    let mut rng = Rng::new(1);
    for round in 0..20_000 {
        let (text, status) = ALL[rng.index(ALL.len())];
        let mut text = text.to_vec();
        for _ in 0..=rng.below(4) {
            let at = rng.index(text.len());
            match rng.below(3) {
                0 => text[at] = b"0123456789-{}[]\",:en\x1b\xff"[rng.index(21)],
                1 => drop(text.remove(at)),
                _ => text.insert(at, b"9{[\"-.e"[rng.index(7)]),
            }
        }
        let status = if rng.below(2) == 0 { status } else { rng.index(256) as i32 };
        let said = match parse_smart(&text, status, round) {
            Ok(smart) => [smart.failing, smart.warnings].concat(),
            Err(why) => vec![why],
        };
        for what in said {
            assert!(what.len() < 1000 && !what.chars().any(char::is_control), "{what:?}");
        }
    }
}
