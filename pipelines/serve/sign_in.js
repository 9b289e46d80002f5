"use strict";
// The token is sent as a header, so that it is in no address, history or log.
const form = document.getElementById("sign-in");
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const problem = document.getElementById("problem");
  const token = document.getElementById("token").value;
  try {
    const answer = await fetch(form.dataset.login, {headers: {Authorization: `Bearer ${token}`}});
    if (answer.ok) location.reload();
    else problem.textContent = "This is not the token.";
  } catch {
    problem.textContent = "quotaflow serve does not answer.";
  }
});
