"""Words that stand in conversations of every kind: one that is used again says nothing about this one.

Made by `python benchmarks/common_words.py --data FOLDER --write`, which says how, out of 187 public sessions of coding
and service agents from 11 sources.
"""

from __future__ import annotations

_WORDS = """
able abort about above absolute absolutely abstraction accept acceptable accepted accepts access accessible according
account accuracy across action actionable actions active actively activity actual actually added adding addition
additional additionally address addresses addressing adds adjust affect affected affects after again against agent
agents agnostic agreed ahead alias aliases align aligned alignment allow allowed allows alone along alongside already
also alternative always among amount analysis analyze analyzing ancestor anchor annotations anonymous another answer
answers anthropic anymore anything anyway appear appears append appended applicable application applied applies apply
applying approach appropriate approval approved apps architecture archive area areas aren args argument arguments
around array asked asking asks assert assess assessment assets assigned associated assume async atomic attempt
attempting attempts auth authenticated authentication author auto automated automatic automatically availability
available avoid avoids await aware away back background backup backward balance band banner base based baseline bash
basic because become becomes been before begin beginning behavior behind being belongs below benefit benefits best
better between beyond binary black blank blob block blocked blocking blocks blue body bold boolean border both bottom
boundaries boundary branch brand break breakdown breaking breaks brief broader broken browser budget buffer bugs build
builder building built bump button bytes cache cached caching calculate calculated call callback called caller calling
calls came cancel cancellation cancelled cannot canonical capabilities capture captured card cards careful carefully
carry cascade case cases cast catch catches category cause caused causes causing center certain chain change changed
changelog changes changing character characters chars chat check checked checking checklist checkout checkpoint checks
child children choice choices choose chunk chunks circular clarify class claude clean cleaned cleaner cleaning cleanly
cleanup clear cleared clearing clearly clears click client clients clone close closed closing code codebase codes
coding collapse collect color colors column columns combine combined come comes command commands comment comments
commit commits committed committing common compact compaction compare compared comparing comparison compatibility
compatible compile compiled compiles complete completed completely completes completion complex complexity component
components comprehensive compute computed concepts concern concerns concrete concurrent condition conditional
conditions config configurable configuration configure configured confirm confirmation confirmed confirming conflict
confusion connected connection connections consider considered consistency consistent consistently console const
constant constants constraint constraints construction constructor contain container containing contains content
contents context contexts continue continues continuing control controller controls convenience convention conventions
conversation convert converts copied copies copy copying core correct correctly correctness cost costs could couldn
count counter counting counts cover coverage covered covering covers crash create created creates creating creation
criteria critical cross ctrl current currently cursor custom cycle dark data database date dates days dead debug
debugging decide decides decision decisions dedicated deep default defaults defer deferred define defined defines
definition definitions delay delete deleted deletes deleting deletion deletions delivery depend dependencies
dependency depending depends deprecated deps depth derive derived describe described description descriptions design
designed detached detail detailed details detect detected detection detects determine deterministic development
diagnostic diagnostics didn diff differ difference differences different differently differs direct direction directly
directories directory dirname dirs dirty disable disabled discard discovery discuss discussed disk dispatch display
dist distinct docs document documentation documented does doesn doing domain done double down download downstream
drive drop dropped duplicate duplicates duplication duration during each earlier early easy echo edge edges edit
editing editor edits effect effective effectively effects effort either element elements else elsewhere email embed
embedded emit emits emitted empty enable enabled encode encoding encountered ending endpoint ends engine enough ensure
ensures enter entire entirely entries entry enum enumerate environment equal equivalent error errors escape especially
establish estimate eval evaluate evaluating evaluation even event events every everything exact exactly examine
example examples exceeded exceeds excellent except exception exceptions exchange excluded excluding exclusive exec
executable execute executed executes executing execution exist existing exists exit exited expand expanded expect
expectations expected expecting expects experience explain explaining explanation explicit explicitly explore export
exported expose extend extends extension extensions external extra extract extracted extracting extracts extremely
facing factory fail failed failing fails failure failures fall fallback falling falls false fast faster fatal feature
features feedback feel fetch fetching fewer field fields file filename filepath files filesystem fill filter filtered
filtering filters final finalize finally find finding findings finds fine finish finished fire first fits fixed fixes
fixing flag flagged flags flat flight float flow flows focus focused folder follow following follows force forget form
format formats formatting forward found four frame framework free fresh freshly from frontend full fully function
functionality functions further future gather general generate generated generates generating generation generic gets
getting github gitignore give given gives glob global goal goes going good google graceful gracefully great green grep
group grouped grouping groups guard guards guess guide guidelines handle handled handler handlers handles handling
happen happening happens happy hard hardcoded harmless hash hasn have haven having head header headers health height
held hello help helper helpers helpful here hidden hide high higher highest hint history hold holds home hook hooks
host hour however href html http https human icon idea identical identified identifier identify identity idle ignore
ignored ignoring image images immediate immediately impact implement implementation implemented implementing
implements implicit import important imported importing imports improve improvement improvements include included
includes including inconsistency inconsistent incorrect incorrectly increase independent independently index indexes
indicate indicates individual info inform information init initial initialization initialize initialized initially
inline inner input inputs insensitive insert insertions inside insight inspect install installation installed instance
instead instructions integer integration intended intent intentional intentionally interaction interactive interface
intermediate internal internally interrupted into introduced invalid investigate invocation invoke involved isarray
isinstance isolated isolation issue issues item items itself javascript jobs join json jsonl just keep keeping keeps
kept keyboard keys keyword kill kind know known label labels language large larger last later latest launch layer
layout lazy leading least leave leaving left legacy length less lets letter level levels library lifecycle light
lightweight like likely limit limited limits line linear lines link linked links lint linter linting linux list listed
listing lists literal little live load loaded loading loads local locally locate located location locations lock
logged logger logging logic login logo logs long longer look looking looks lookup loop loops lost lower machine macos
made main maintain major make makes making malformed manage managed management manager manages manual manually many
mapping maps mark markdown marked marker markers master match matches matching material math matter maximum maybe mean
meaning meaningful means meant measure mechanism media medium member members memory mention mentioned mentions menu
merge merged merging message messages meta metadata method methods middle might migrate migration mind minimal minimum
minor minute minutes mismatch miss missing mistake mixed mkdir mobile mock mode model models modes modification
modifications modified modifies modify modifying module modules month more most move moved moves moving much multi
multiple must muted myself name named names naming native natural navigation near necessary need needed needing needs
negative neither nested network never newer newlines newly next node none normal normalization normalize normalized
normalizes note noted notes nothing notice noticed notification null number numbers numeric object objects observed
occurred occurrences occurs offset often okay older omitted once oneline ones only open opened opening opens operating
operation operations optimization option optional optionally options opus order ordered ordering organization
organized origin original other others otherwise outline output outputs outside over overall overlay override
overrides overview overwritten package packages page pagination pair pairs parallel param parameter parameters params
parent parse parsed parser parses parsing part partial parts pass passed passes passing past paste patch path paths
pattern patterns pause payload pending perfect perform performance performed permanent permission permissions
persisted persistence persistent persists person phase physical pick picks picture piece pieces pipe pipeline place
placed placeholder places plain plan planning plans platform please plugins plus point pointer pointing points policy
populate populated port portion position positioning positive positives possible possibly post potential potentially
prefer preference preferences preferred prefix prepare present preserve preserved preserves press prevent preventing
prevents preview previous previously primary print prior priority private probably problem problems proceed proceeding
process processed processes processing produce produced produces product profile progress project projects promise
prompt prompts proper properly properties property proposed props protocol provide provided provider provides
providing proxy public publish pull pure purely purpose push pushed python quality queries query question questions
queue quick quickly quite quote race raise random range rather reach react read readable reader reading readme reads
ready real really reason reasoning reasons rebuild receive received receives recent recently recommend recommendation
recommended record records recursive recursively redacted redirect reduce reduces redundant refactor reference
referenced references referencing reflect refresh refs regarding regardless regex register registered registry regular
reject rejected rejects related relative release releases relevant reload remain remaining remains remember reminder
remote removal remove removed removes removing rename renamed renaming render rendered rendering renders repeat
repeated replace replaced replacement replaces replacing repo report reported reports repos repository represents
request requested requests require required requirement requirements requires research reserved reset resets
resolution resolve resolved resolves resolving resource resources respect respects respond response responses
responsive rest restore restored result results resume resuming retrieve retrieved retry return returned returning
returns reusable reuse reused revert review reviewed reviewing reviews rewrite rewrites right risk risks roadmap role
room root round route routes routing rows rule rules runner running runs runtime safe safety said same save saved
saves saving says scale scan scenario scenarios schema scheme scope scoped scoping screen script scripts search
searching second seconds section sections security seem seems sees segment segments select selected selection self
send sense sensitive sent separate separated separately separator separators sequence sequentially serve server serves
service session sessionid sessions sets setting settings setup several severity shadow shape share shared sharing
shell shift shipped short shorter should shouldn show showing shown shows sibling side signal signals signatures
significant silent silently similar simple simpler simplest simplify simply since single site size sized skill skills
skip skipped skipping skips slash sleep slice slightly slow slug small smaller smart snapshot snippets solid solution
solutions solve some someone something soon sort sorted sounds source sources space spaces span spawn spec special
specific specifically specified specifies specify specifying speed split stable stack stage staged stale standalone
standard start started starting starts startswith startup stash stat state statement statements states static stats
status stay stays stderr stdin stdout step steps still stop storage store stored stores strategy stream streaming
strict string stringify strings strip structure structured stuck style styles submit submitted submitting subsequent
subset substring succeeded success successful successfully such sufficient suffix suggest suggested suggestion
suggestions suite summarize summary support supported supports sure surrounding swap switch switched switching sync
syntax system systematically table tables tabs tags tail take takes taking target targeted targets task tasks team
technical technology tell temp template templates temporary term terminal test tested testing tests text than that
their them theme themselves then there these they thing things think thinking third this thorough those though thought
thread three threshold through throw throws ticket time timeline timeout times timestamp timing title today todo
together toggle token tokens tolowercase toml tool tools toolu tostring total touch touching trace track tracked
tracking tracks trailing transcript transform transition translate transparent treat treated tree tried tries trigger
triggered triggers trim trip true truly truncate truncated truth trying turn turns twice type typed typeof types
typescript typically typing unable unavailable unchanged uncommitted undefined under understand understanding
unexpected unified union unique unit unknown unless unnecessary unresolved unstaged until untouched untracked unused
upcoming update updated updates updating upgrade urls usage used useful user username users uses using usually util
utilities utility utils uuid valid validate validates validation value values variable variables variant variants
various vars verbose verification verified verify verifying version versions very video view viewing virtual
visibility visible visit visual void wait waiting walk want wanted wants warn warning warnings wasn watch weight
welcome well were what whatever when whenever where whether which while white whitespace whole wide width will window
windows wire wish with within without word work worked workflow workflows working works workspace worth would wouldn
wrap wrapped wrapper wrapping wraps write writes writing written wrong wrote yaml yellow your zero
"""
COMMON_WORDS = frozenset(_WORDS.split())
