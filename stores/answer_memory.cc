#include "stores/answer_memory.h"

#include <limits>
#include <vector>

#include "holdfast/delivery_state_store.h"
#include "journal/format/codec.h"

namespace holdfast {
namespace {

using Stated = std::vector<std::pair<Lsn, uint64_t>>;  // numbers, rising, with their hashes

Stated AnswersIn(const RawRecord& record) {
  Stated answers;
  ForEachAnswer(FieldsOf<Answers>(record).answers,
                [&](Lsn lsn, uint64_t hash) { answers.emplace_back(lsn, hash); });
  return answers;
}

// Adds `more` to the draft: to its last record, if that is one of answers and has room.
void State(const Stated& more, BatchDraft& draft) {
  Stated answers;
  if (!draft.empty()) {
    const RawRecord last = draft.raw(draft.count() - 1);
    if (static_cast<RecordType>(last.header.type) == RecordType::kAnswers) {
      answers = AnswersIn(last);
      if (answers.size() + more.size() <= AnswerMemory::kInRecordMax &&
          answers.back().first < more.front().first) {
        draft.DropLast();
      } else {
        answers.clear();
      }
    }
  }
  AnswersWriter writer;
  for (const auto& [lsn, hash] : answers) writer.Add(lsn, hash);
  for (const auto& [lsn, hash] : more) writer.Add(lsn, hash);
  draft.Add(Answers{.answers = writer.stored()});
}

}  // namespace

void AnswerMemory::ApplyRemoval(const DeliveryRemove& removal, Lsn lsn, const RecordRef& ref) {
  sequencer_.AssertHeld();
  const bool answered = removal.reason == static_cast<uint64_t>(Reason::kAcked) &&
                        removal.idempotency_key.has_value();
  if (!answered) return;
  Take({.lsn = lsn,
        .hash = AnswerHash(removal.id, removal.epoch, removal.client, *removal.idempotency_key),
        .basis = lsn,
        .segment = ref.segment});
}

void AnswerMemory::Apply(const RawRecord& record, Lsn lsn, const RecordRef& ref) {
  sequencer_.AssertHeld();
  ForEachAnswer(FieldsOf<Answers>(record).answers, [&](Lsn of, uint64_t hash) {
    sequencer_.AssertHeld();
    Take({.lsn = of, .hash = hash, .basis = lsn, .segment = ref.segment});
  });
}

void AnswerMemory::Take(const RememberedAnswer& answer) {
  if (RememberedAnswer* const known = window_.Find(answer.lsn)) {
    if (answer.basis <= known->basis) return;
    Release(*known);
    *known = answer;
    live_.Add(SegmentId(answer.segment), kLiveBytes);
    return;
  }
  live_.Add(SegmentId(answer.segment), kLiveBytes);
  if (const auto forgotten = window_.Add(answer)) Release(*forgotten);
}

bool AnswerMemory::RestateRemoval(Lsn lsn, BatchDraft& draft) const {
  sequencer_.AssertHeld();
  const RememberedAnswer* const known = window_.Find(lsn);
  if (known == nullptr || known->basis != lsn) return false;
  State({{known->lsn, known->hash}}, draft);
  return true;
}

bool AnswerMemory::Restate(const RawRecord& record, Lsn lsn, BatchDraft& draft) const {
  sequencer_.AssertHeld();
  Stated answers = AnswersIn(record);
  std::erase_if(answers, [&](const auto& answer) {
    sequencer_.AssertHeld();
    const RememberedAnswer* const known = window_.Find(answer.first);
    return known == nullptr || known->basis != lsn;
  });
  if (answers.empty()) return false;
  State(answers, draft);
  return true;
}

Lsn AnswerMemory::Find(uint64_t hash) const {
  sequencer_.AssertHeld();
  return window_.FindHash(hash);
}

uint64_t AnswerMemory::size() const {
  sequencer_.AssertHeld();
  return window_.size();
}

// The cursor is the number of the answer that comes next, or one below it.
bool AnswerMemory::WriteSnapshot(uint64_t& cursor, size_t bytes_max, std::string& out) const {
  sequencer_.AssertHeld();
  const size_t full = out.size() + bytes_max;
  bool more = false;
  Encoder encode(out);
  window_.ForEachFrom(Lsn(cursor), [&](const RememberedAnswer& answer) {
    more = out.size() >= full;
    if (more) return false;
    encode.Varint(answer.lsn.value());
    encode.Fixed(answer.hash);
    encode.Varint(answer.basis - answer.lsn);
    encode.Varint(answer.segment);
    cursor = answer.lsn.value() + 1;
    return true;
  });
  return more;
}

Status AnswerMemory::LoadSnapshot(ByteView entries, uint64_t) {
  sequencer_.AssertHeld();
  Decoder in(entries);
  while (in.remaining() > 0) {
    const Lsn lsn(in.Varint());
    const auto hash = in.Fixed<uint64_t>();
    const uint64_t behind = in.Varint();
    const uint64_t segment = in.Varint();
    if (!in.ok() || !lsn || behind > ~uint64_t{0} - lsn.value() || segment == 0 ||
        segment > std::numeric_limits<uint32_t>::max()) {
      return DataLoss("an entry of the remembered answers does not decode");
    }
    Take({.lsn = lsn,
          .hash = hash,
          .basis = lsn + behind,
          .segment = static_cast<uint32_t>(segment)});
  }
  return absl::OkStatus();
}

void AnswerMemory::Reset() {
  sequencer_.AssertHeld();
  window_.ForEachFrom(Lsn(), [this](const RememberedAnswer& answer) {
    sequencer_.AssertHeld();
    Release(answer);
    return true;
  });
  window_.Clear();
}

}  // namespace holdfast
