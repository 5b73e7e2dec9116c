use super::*;
use crate::matrix::parse_campaign;
use crate::metric::Metric;

/// Predicts a rate from the number of members.
struct Counting;

impl Oracle for Counting {
    fn off_by(&self, profiles: &[String]) -> (u32, String) {
        (17, format!("nothing is published of {}", profiles.join(" and ")))
    }

    fn profiles(&self, _stack: &Stack) -> BTreeSet<String> {
        BTreeSet::from(["hdd".to_owned()])
    }

    fn check(&self, stack: &Stack) -> Result<(), String> {
        match stack.to_string().contains("nonsense") {
            true => Err("there is no such profile".to_owned()),
            false => Ok(()),
        }
    }

    fn predict(&self, asked: &[Asked<'_>], _is_repeated: bool) -> Vec<Result<Predicted, String>> {
        asked.iter().map(count).collect()
    }
}

fn count(asked: &Asked<'_>) -> Result<Predicted, String> {
    if asked.workload.tool != "dd" {
        return Err(format!("{} is not known here", asked.workload.tool));
    }
    let mut measured = Measured::default();
    let _ = measured.push(Metric::Throughput, asked.stack.leaves().len() as f64 * 1e6);
    let (size_bytes, region_bytes) = (1 << 30, asked.region_bytes);
    Ok(Predicted { size_bytes, region_bytes, measured, seconds: 2.0 })
}

fn campaign(stack: &str, tool: &str) -> Campaign {
    let text = format!(
        "name = \"t\"\nrepetitions = 5\n[[subject]]\nname = \"one\"\nstack = \"model(hdd, size=1G)\"\n\
         baseline = true\n[[subject]]\nname = \"other\"\n{stack}\n[[job]]\ntool = \"{tool}\"\n"
    );
    parse_campaign(&text, "test").unwrap()
}

const TWO: &str = "stack = \"raid0(model(hdd, size=1G), model(hdd, size=1G))\"";
const DD: &str = "dd\"\nop = [\"read\", \"write\"]\nbs = \"1M";

#[test]
fn a_prediction_is_one_repetition_without_a_time_of_day() {
    let dir = tempfile::tempdir().unwrap();
    let folders = ["a", "b"].map(|name| dir.path().join(name));
    let results = folders.map(|folder| {
        let tally = predict_campaign(&campaign(TWO, DD), &folder, &Counting).unwrap();
        assert_eq!((tally.planned, tally.measured), (4, 4));
        Store::open(&folder).unwrap().results().unwrap()
    });
    assert_eq!(results[0], results[1]);
    let [one, _] = results;
    assert_eq!(one.campaign.repetitions, 1);
    assert_eq!(one.prediction().unwrap().profiles, ["hdd"]);
    let other = one.trials.iter().find(|trial| trial.subject == "other").unwrap();
    assert_eq!(other.measured.get(Metric::Throughput), Some(2e6));
    assert_eq!(other.started_unix_s, 0);
}

/// As in a run: the first member of the topmost redundant level is left out.
#[test]
fn degraded_is_without_the_first_member() {
    let dir = tempfile::tempdir().unwrap();
    let mirrors = TWO.replace("raid0", "raid1");
    let job = "dd\"\nop = \"read\"\nhealth = [\"healthy\", \"degraded\", \"scrubbing\"]\nbs = \"1M";
    predict_campaign(&campaign(&mirrors, job), dir.path(), &Counting).unwrap();
    let results = Store::open(dir.path()).unwrap().results().unwrap();
    let of = |health: Health| {
        let state = |trial: &&StoredTrial| {
            let named = Health::ALL.into_iter().find(|one| trial.workload.contains(one.name()));
            trial.subject == "other" && named.unwrap_or(Health::Healthy) == health
        };
        let trial = results.trials.iter().find(state).unwrap();
        (trial.measured.get(Metric::Throughput), trial.outcome.clone())
    };
    assert_eq!(of(Health::Healthy).0, Some(2e6));
    assert_eq!(of(Health::Degraded).0, Some(1e6));
    let Outcome::Impossible(why) = of(Health::Scrubbing).1 else { panic!("it is not predicted") };
    assert!(why.contains("an array that is scrubbing"), "{why}");
}

#[test]
fn what_cannot_be_predicted_has_its_reason() {
    let dir = tempfile::tempdir().unwrap();
    predict_campaign(&campaign("path = \"/dev/never\"", DD), dir.path(), &Counting).unwrap();
    let results = Store::open(dir.path()).unwrap().results().unwrap();
    let other = results.trials.iter().find(|trial| trial.subject == "other").unwrap();
    let Outcome::Impossible(reason) = &other.outcome else { panic!("{other:?}") };
    assert!(reason.starts_with(NOT_PREDICTED) && reason.contains("/dev/never"), "{reason}");
}

#[test]
fn where_nothing_makes_sense_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("results");
    let refused = |stack, tool| {
        let error = predict_campaign(&campaign(stack, tool), &folder, &Counting).unwrap_err();
        assert!(!folder.exists());
        error.to_string()
    };
    let wrong = refused("stack = \"model(nonsense, size=1G)\"", DD);
    assert!(wrong.contains("other: there is no such profile"), "{wrong}");
    let nothing = refused(TWO, "hdparm");
    assert!(nothing.contains("2 × not predicted: hdparm is not known here"), "{nothing}");
}

#[test]
fn predictions_and_measurements_do_not_share_a_folder() {
    let dir = tempfile::tempdir().unwrap();
    let campaign = campaign(TWO, DD);
    let once = Campaign { repetitions: 1, ..campaign.clone() };
    let store = Store::create(dir.path(), &once).unwrap();
    store.begin_session(1, &crate::environment::read_environment(Vec::new())).unwrap();
    drop(store);
    let error = predict_campaign(&campaign, dir.path(), &Counting).unwrap_err().to_string();
    assert!(error.contains("measured, and these would be predicted"), "{error}");
    let other = dir.path().join("predicted");
    predict_campaign(&campaign, &other, &Counting).unwrap();
    let error = Store::earlier(&other, &campaign).unwrap_err().to_string();
    assert!(error.contains("predicted, and these would be measured"), "{error}");
    // A second prediction replaces the first.
    predict_campaign(&campaign, &other, &Counting).unwrap();
}
