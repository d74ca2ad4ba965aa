// Any record as text or JSON, derived from the catalogue; for tools and messages. Also what is not
// in the catalogue, or does not decode, has a form.
#pragma once

#include <string>

#include "journal/base/json.h"
#include "journal/format/records.h"

namespace holdfast {

struct RecordTextOptions {
  bool event = false;  // show the bytes of events, unpacked; else only their sizes
};

// One line without its end: "delivery-put id=a-1 epoch=1 topic="with space" … offset=- event=256".
std::string RecordText(const RawRecord& raw, const RecordTextOptions& options = {});

// "type" and the fields, as members of the object that is open in `out`.
void RecordJson(const RawRecord& raw, JsonWriter& out, const RecordTextOptions& options = {});

// A name for a text line: bare where it is plain, else a JSON string or base64:….
std::string NameText(std::string_view name);

}  // namespace holdfast
