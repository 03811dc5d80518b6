# Speaks as Claude Code does with `stream-json` in both directions, and misbehaves where its prompt says so. It keeps its
# conversation in a file of its name, beside the prompts it was given in all of them.

while [ $# -gt 0 ]; do
  case "$1" in
  --session-id) conversation=$2 ;;
  --resume) conversation=$2; resumed=yes ;;
  esac
  shift
done

state() { printf '{"type":"system","subtype":"session_state_changed","state":"%s"}\n' "$1"; }
part() { printf '{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"%s"}},"api_message_id":"%s"}\n' "$2" "$1"; }
message() { printf '{"type":"assistant","message":{"id":"%s","content":[{"type":"text","text":"%s"}]}}\n' "$1" "$2"; }
called() { printf '{"type":"assistant","message":{"id":"m-tools","content":[{"type":"tool_use","id":"%s","name":"Bash","input":{"command":"%s"}}]}}\n' "$1" "$2"; }
returned() { printf '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"%s","content":"%s"}]}}\n' "$1" "$2"; }
granted() { printf '{"type":"control_response","response":{"subtype":"success","request_id":"%s","response":{}}}\n' "$1"; }
result() { printf '{"type":"result","subtype":"success","is_error":false,"result":"","user_message_uuids":["%s"]}\n' "$1"; }
lifecycle() { printf '{"type":"command_lifecycle","command_uuid":"%s","state":"%s"}\n' "$1" "$2"; }
field() { printf '%s' "$line" | sed -n 's/.*"'"$1"'":"\([^"]*\)".*/\1/p'; }
done_with() { result "$1"; lifecycle "$1" completed; state idle; }
wait_for() { while [ ! -e "$1" ]; do sleep 0.02; done; }

if [ -n "$resumed" ] && [ ! -e "talk-$conversation" ]; then
  printf '{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: %s"]}\n' "$conversation"
  exit 1
fi

asks() {
  printf '{"type":"control_request","request_id":"r-%s","request":{"subtype":"can_use_tool","tool_name":"Write","input":{"file_path":"note.txt"},"tool_use_id":"t1"}}\n' "$1"
  read -r line
  case "$line" in
  *'"behavior":"allow"'*) : > note.txt; message m1 written ;;
  *'"subtype":"interrupt"'*) interrupted "$1"; return ;;
  *) message m1 refused ;;
  esac
  done_with "$1"
}

interrupted() {
  granted "$(field request_id)"
  printf '{"type":"result","subtype":"error_during_execution","is_error":true,"terminal_reason":"aborted_streaming","user_message_uuids":["%s"]}\n' "$1"
  lifecycle "$1" cancelled
  state idle
}

while read -r line; do
  case "$line" in
  *'"subtype":"initialize"'*) granted init; continue ;;
  *'"subtype":"interrupt"'*) granted "$(field request_id)"; continue ;;
  *'"type":"user"'*) ;;
  *) continue ;;
  esac
  id=$(field uuid)
  printf '%s\n' "$id" >> "talk-$conversation"
  printf '%s\n' "$line" >> heard
  state running
  lifecycle "$id" queued
  lifecycle "$id" started
  printf '{"type":"system","subtype":"init","session_id":"%s"}\n' "$conversation"
  case "$line" in
  *'do ask'*) asks "$id" ;;
  *'do late'*) part m1 'before '; : > began; wait_for go; part m1 after; message m1 'before after'; done_with "$id" ;;
  *'do tools'*)
    called t1 one; called t2 two
    returned t2 second; returned t1 first
    message m2 both; done_with "$id" ;;
  *'do noise'*)
    printf 'this is no JSON\n[1,2\n{"type":"news"}\n{"type":"assistant"}\n{"type":"result","origin":{"kind":"task-notification"},"subtype":"success"}\n'
    message m1 heard; done_with "$id" ;;
  *'do silent'*) : > began; read -r line; interrupted "$id" ;;
  *'do deaf'*) : > began; while :; do sleep 1; done ;;
  *'do die'*) part m1 'before '; exit 7 ;;
  *'do words'*)
    message m1 first; : > began; read -r line
    words=$(field uuid); lifecycle "$words" queued
    result "$id"; lifecycle "$id" completed; lifecycle "$words" started
    message m2 "$(field text)"; done_with "$words" ;;
  *) message m1 "$(wc -l < "talk-$conversation" | tr -d ' ') prompts"; done_with "$id" ;;
  esac
done
