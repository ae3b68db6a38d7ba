// The dialogs: the login, and the question before a lock is broken or asked for. <dialog> keeps the focus
// inside, closes on Escape, and gives the focus back.
import {ApiError, get, login} from "./api.js";
import {el, setText} from "./dom.js";

function show(dialog) {
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.showModal();
}

function field(label, attributes) {
  const input = el("input", {id: `field-${attributes.name}`, ...attributes});
  return [
    input,
    el("label",
        { for: input.id
        },
        label),
    input
  ];
}

const kLoginErrors = {
  401: "The user name or the password is wrong.",
  403: "This user may not read INFO, which the dashboard needs.",
};

// Asks for a user and a password until the server accepts them; resolves to true, or to false on Cancel.
export function askLogin() {
  return new Promise((resolve) => {
    const [user, ...userRow] =
        field("User", {name: "user", value: "default", autocomplete: "username", required: true});
    const [password, ...passwordRow] = field("Password",
        {name: "password", type: "password", autocomplete: "current-password", required: true});
    const error = el("p", {class: "dialog-error", role: "alert"});
    const before = login.get();
    let done = false;
    const submit = async (event) => {
      event.preventDefault();
      login.set(user.value, password.value);
      try {
        await get("info");
        done = true;
        dialog.close();
      } catch (failure) {
        before ? sessionStorage.setItem("holdfast-login", before) : login.clear();
        setText(error, kLoginErrors[failure.status] ?? failure.message);
        password.select();
      }
    };
    const dialog = el("dialog", {id: "login", "aria-labelledby": "login-title"},
        el("h2", {id: "login-title"}, "Log in"),
        el("form", {onsubmit: submit}, ...userRow, ...passwordRow, error,
            el("div", {class: "buttons"},
                el("button", {type: "button", onclick: () => dialog.close()}, "Cancel"),
                el("button", {type: "submit", class: "primary"}, "Log in"))));
    dialog.addEventListener("close", () => resolve(done));
    show(dialog);
    password.focus();
  });
}

// Asks `question`, explains it by elements, and runs action() if the user agrees. If action() fails, the
// dialog stays open and shows why.
export function confirmAction({question, details, label, action}) {
  const error = el("p", {class: "dialog-error", role: "alert"});
  const agree = async () => {
    go.disabled = true;
    try {
      await action();
      dialog.close();
    } catch (failure) {
      if (!(failure instanceof ApiError)) throw failure;
      setText(error, failure.message);
    } finally {
      go.disabled = false;
    }
  };
  const cancel = el("button", {type: "button", onclick: () => dialog.close()}, "Cancel");
  const go = el("button", {type: "button", class: "danger", id: "confirm", onclick: agree}, label);
  const dialog = el("dialog", {"aria-labelledby": "confirm-title", "aria-describedby": "confirm-details"},
      el("h2", {id: "confirm-title"}, question), el("div", {id: "confirm-details"}, ...details), error,
      el("div", {class: "buttons"}, cancel, go));
  show(dialog);
  cancel.focus();
}
