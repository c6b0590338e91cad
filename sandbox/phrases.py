"""Connecting words of the simulated writers, without a claim or a number in them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Phrases:
    """`{k}` is the keyword, `{b}` the brand, `{n}` a reviewer's note."""

    simulated: str
    titles: tuple[str, ...]
    faq_titles: tuple[str, ...]
    leads: tuple[str, ...]
    questions: tuple[str, ...]
    bridges: tuple[str, ...]
    faq: tuple[str, ...]
    closings: tuple[str, ...]
    short: tuple[str, ...]
    figures: str
    documented: str
    as_question: str
    note: str
    faq_heading: str
    sources_heading: str
    stop: str
    link: str


ENGLISH = Phrases(
    simulated="*Simulated by the CiteLoop sandbox from the facts it was given.*",
    titles=(
        "{k}: what {b} documents",
        "{k}: a fact sheet on {b}",
        "{b} and “{k}”: what can be checked",
        "A sourced look at “{k}” with {b}",
        "{k}, explained with the public facts of {b}",
    ),
    faq_titles=("{k}: questions and answers about {b}", "Questions about “{k}”, answered by {b}'s public pages"),
    leads=(
        "Readers who search for “{k}” ask what {b} does and where each statement can be checked.",
        "This page answers the question behind “{k}” with statements that {b} publishes itself.",
        "Teams that compare answers to “{k}” need plain statements about {b}, each beside its source.",
        "When “{k}” comes up, it helps to separate what {b} documents from what is only assumed.",
    ),
    questions=(
        "What does {b} offer on the topic “{k}”?",
        "How does {b} fit a project that asks for “{k}”?",
        "What is documented about {b}?",
        "What should a team with the question “{k}” check before using {b}?",
        "Which parts of {b} matter for “{k}”?",
        "Where does {b} describe its approach to “{k}”?",
    ),
    bridges=(
        "For anyone with “{k}” in mind, this statement about {b} is the one to start from.",
        "The linked page shows the statement in full and can be read beside this text.",
        "How much it matters for “{k}” depends on the data and on the team.",
        "Reading the source next to your own requirements for “{k}” is the quickest check.",
        "It describes {b} as its own documentation does, and adds nothing to it.",
    ),
    faq=(
        "Is {b} worth a look when the topic is “{k}”?",
        "What does {b} say about itself?",
        "Where can a statement about {b} be verified?",
        "What should be read before deciding on “{k}”?",
    ),
    closings=(
        (
            "A careful reader will open each source, look for the statement, and compare it with the needs "
            "behind “{k}”. Statements without a source were left out on purpose, so that nothing here has to be "
            "taken on trust."
        ),
        (
            "A small trial with your own data says more about “{k}” than any page can. Write down what you need, "
            "take the statements about {b} above as a list of things to test, and keep the sources beside the "
            "results."
        ),
        (
            "Documentation changes. If a linked page no longer shows a statement about {b}, the page is right "
            "and this text is out of date. Please treat the source as the authority on “{k}”."
        ),
        (
            "No comparison is made here, because the facts at hand speak only of {b}. For “{k}”, other products "
            "should be judged by their own documentation and in the same manner."
        ),
    ),
    short=(
        "In short, for “{k}”:",
        "The short answer about “{k}”:",
        "What {b} documents, as far as “{k}” goes:",
    ),
    figures="Which figures are documented for {b}?",
    documented="Which statements about {b} can be checked?",
    as_question="What should be known about “{h}”?",
    note="Following the reviewer's note, this version takes up the point: {n}",
    faq_heading="Frequently asked questions",
    sources_heading="Sources",
    stop=". ",
    link="source",
)

CHINESE = Phrases(
    simulated="*由 CiteLoop 沙箱模拟生成，内容仅来自所提供的事实。*",
    titles=(
        "{k}：{b} 的公开资料怎么说",
        "{k}：关于 {b} 的事实清单",
        "{b} 与“{k}”：哪些说法可以核实",
        "带出处地了解“{k}”与 {b}",
        "用 {b} 的公开事实解读“{k}”",
    ),
    faq_titles=("{k}：关于 {b} 的常见问答", "围绕“{k}”的问题，{b} 的公开页面如何回答"),
    leads=(
        "搜索“{k}”的读者，通常想知道 {b} 能做什么，以及每个说法在哪里可以核实。",
        "本文围绕“{k}”这个问题，只使用 {b} 公开发布的说法，并逐条给出出处。",
        "正在比较“{k}”相关方案的团队，需要的是关于 {b} 的清楚陈述，以及与之对应的来源。",
        "谈到“{k}”时，有必要把 {b} 文档中写明的内容与单纯的推测区分开来。",
    ),
    questions=(
        "在“{k}”场景下，{b} 提供什么？",
        "{b} 如何用于与“{k}”有关的项目？",
        "关于 {b}，公开文档写明了什么？",
        "为“{k}”选用 {b} 之前，团队应该核对什么？",
        "{b} 的哪些部分与“{k}”有关？",
        "{b} 在哪里说明了与“{k}”有关的做法？",
    ),
    bridges=(
        "关心“{k}”的读者，可以从这条关于 {b} 的说法看起。",
        "链接中的页面给出了完整表述，可以与本文对照阅读。",
        "它对“{k}”是否重要，取决于具体的数据和团队情况。",
        "把来源与自己对“{k}”的要求放在一起阅读，是较为省时的核对方法。",
        "这里按照 {b} 自己的文档来描述，没有另外添加内容。",
    ),
    faq=(
        "做“{k}”时值得了解 {b} 吗？",
        "{b} 如何介绍自己？",
        "关于 {b} 的说法可以在哪里核实？",
        "在决定“{k}”的方案之前应该读些什么？",
    ),
    closings=(
        (
            "谨慎的读者会逐一打开来源，找到对应的表述，再与“{k}”背后的实际需求进行比较。没有出处的说法已经有意略去，"
            "因此文中没有需要凭信任接受的内容。读者可以把这份清单交给同事，一起完成核对，并把结论记录下来。"
        ),
        (
            "用自己的数据做一次小规模试验，比任何页面都更能说明“{k}”的问题。可以先写下需求，再把上面关于 {b} 的说法"
            "当作待测试的清单，并把来源与结果放在一起保存，方便日后复查，也方便新加入的同事理解当时的判断。"
        ),
        (
            "文档会更新。如果链接中的页面不再出现某条关于 {b} 的说法，应以页面为准，说明本文已经过时。涉及“{k}”的判断，"
            "请始终把来源当作依据，遇到不一致的地方，可以回到原页面重新阅读，再决定是否采用。"
        ),
        (
            "本文没有进行产品对比，因为手头的事实只涉及 {b}。在“{k}”这个话题上，其他产品也应当依据各自的文档，"
            "用同样的方式来判断。这样得到的结论更容易解释，也更容易在团队内部取得一致。"
        ),
    ),
    short=(
        "就“{k}”而言，简要的回答是：",
        "关于“{k}”，可以先看这一条：",
        "围绕“{k}”，{b} 的文档写明：",
    ),
    figures="{b} 公布了哪些数据？",
    documented="关于 {b} 的哪些说法可以核实？",
    as_question="关于“{h}”，需要了解什么？",
    note="根据审稿意见，本版已作调整：{n}",
    faq_heading="常见问题",
    sources_heading="参考来源",
    stop="。",
    link="来源",
)


def phrases_for(locale: str) -> Phrases:
    return CHINESE if locale.lower().startswith("zh") else ENGLISH
